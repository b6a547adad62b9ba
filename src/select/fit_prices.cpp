// SPDX-License-Identifier: MIT
#include "select/fit_prices.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "config/config_name.hpp"
#include "config/price_names.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

// A measured launch: what it does, and how long that took.
struct Sample {
    FamilyId family;
    ArchSpec* arch;
    Work work;
    double log_us;
};

class Samples {
public:
    Samples(const Chip& chip, const ArchCatalog& archs, int threads) : chip_(chip), archs_(archs), threads_(threads) {}

    bool add(const Record& record, const FamilyId* family) {
        if (record.status != RecordStatus::ok || !std::isfinite(record.time_us) || record.time_us <= 0) return false;
        const auto config = parse_kernel_name(record.kernel_name);
        const auto problem = parse_problem(record.problem);
        if (!config || !problem || check_problem(*problem) || config->op != problem->op) return false;
        if (family && family_of(*config) != *family) return false;
        ArchSpec* arch = arch_of(config->arch);
        if (!arch || !find_family(*config, *arch) || !may_run(ProblemView(*problem), *config, *arch)) return false;
        Sample sample{family_of(*config), arch, work_of(WorkProblem(*problem, *arch, threads_), *config),
                      std::log(record.time_us)};
        const double us = evaluate(sample.work);
        if (!std::isfinite(us) || us <= 0) return false;
        samples_.push_back(std::move(sample));
        return true;
    }

    void set_prices(const Prices& prices) {
        for (const auto& [name, arch] : own_archs_) arch->prices = prices;
    }
    const std::vector<Sample>& all() const { return samples_; }

private:
    // With the chip's numbers; null where the chip is no such thing.
    ArchSpec* arch_of(const std::string& name) {
        if (const auto known = own_archs_.find(name); known != own_archs_.end()) return known->second.get();
        const auto found = archs_.find(name);
        if (!found || (*found)->backend != chip_.backend) return nullptr;
        auto& arch = own_archs_[name] = std::make_unique<ArchSpec>(**found);
        set_chip(*arch, chip_);
        return arch.get();
    }

    const Chip& chip_;
    const ArchCatalog& archs_;
    int threads_;
    std::map<std::string, std::unique_ptr<ArchSpec>> own_archs_;
    std::vector<Sample> samples_;
};

// By the logarithms of the fitted prices: the sum of squares of errors, its gradient and about its second derivatives.
struct Squares {
    explicit Squares(std::size_t count) : gradient(count), matrix(count * count) {}

    double sum = 0;
    std::vector<double> gradient, matrix;
};

// Solves (matrix + what is added to its diagonal) x = b for a symmetric matrix; false where that is not positive definite.
bool solve(std::vector<double> matrix, const std::vector<double>& added, std::vector<double>& b) {
    const std::size_t n = b.size();
    for (std::size_t i = 0; i < n; ++i) matrix[i * n + i] += added[i];
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            double left = matrix[i * n + j];
            for (std::size_t k = 0; k < j; ++k) left -= matrix[i * n + k] * matrix[j * n + k];
            if (i == j && left <= 0) return false;
            matrix[i * n + j] = i == j ? std::sqrt(left) : left / matrix[j * n + j];
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < i; ++k) b[i] -= matrix[i * n + k] * b[k];
        b[i] /= matrix[i * n + i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t k = i + 1; k < n; ++k) b[i] -= matrix[k * n + i] * b[k];
        b[i] /= matrix[i * n + i];
    }
    return true;
}

class Fitting {
public:
    Fitting(Samples& samples, const Prices& start, double hold) : samples_(samples), prices_(start), hold_(hold) {
        std::set<std::size_t> used;
        for (const Sample& sample : samples.all()) {
            for (const WorkNode& node : sample.work.nodes) {
                if (node.form != WorkForm::price) continue;
                if (const auto index = price_index(*sample.arch, node.price)) used.insert(*index);
            }
        }
        fitted_.assign(used.begin(), used.end());
        // The clock only says which cycles the others are of.
        std::erase_if(fitted_, [](std::size_t index) { return price_name(index) == "clock.cycles_per_us"; });
        for (const std::size_t index : fitted_) logs_.push_back(std::log(all_prices(prices_)[index].value));
        start_ = logs_;
    }

    // Levenberg and Marquardt: steps as long as they make the error smaller.
    void run() {
        constexpr int kMostSteps = 300, kMostTries = 12;
        constexpr double kEnough = 1e-12, kLongestStep = 1.0;
        double damping = 1e-2;
        Squares now = squares(logs_);
        for (int step = 0; step < kMostSteps; ++step) {
            bool better = false;
            double gained = 0;
            for (int i = 0; i < kMostTries && !better; ++i) {
                std::vector<double> move = now.gradient, next = logs_, added(logs_.size());
                for (std::size_t j = 0; j < move.size(); ++j) {
                    added[j] = damping * now.matrix[j * move.size() + j] + hold_;
                    move[j] = -move[j];
                }
                if (!solve(now.matrix, added, move)) {
                    damping *= 10;
                    continue;
                }
                for (std::size_t j = 0; j < move.size(); ++j) {
                    next[j] += std::clamp(move[j], -kLongestStep, kLongestStep);
                }
                Squares then = squares(next);
                better = std::isfinite(then.sum) && then.sum < now.sum;
                damping = better ? std::max(damping / 5, 1e-9) : damping * 4;
                if (!better) continue;
                gained = now.sum - then.sum;
                now = std::move(then), logs_ = std::move(next);
            }
            if (!better || gained <= kEnough * now.sum) break;
        }
        set(logs_);
    }

    const Prices& prices() const { return prices_; }
    const std::vector<std::size_t>& fitted() const { return fitted_; }

private:
    void set(const std::vector<double>& logs) {
        for (std::size_t i = 0; i < fitted_.size(); ++i) all_prices(prices_)[fitted_[i]].value = std::exp(logs[i]);
        samples_.set_prices(prices_);
    }

    Squares squares(const std::vector<double>& logs) {
        set(logs);
        const std::size_t n = logs.size();
        Squares all(n);
        std::vector<double> values, slopes(n);
        std::vector<std::size_t> met;
        for (const Sample& sample : samples_.all()) {
            evaluate(sample.work, values);
            const double us = values.back(), error = std::log(us) - sample.log_us;
            all.sum += error * error;
            met.clear();
            each_derivative(sample.work, values, [&](const double* price, double derivative) {
                const auto index = price_index(*sample.arch, price);
                const auto found = index ? std::lower_bound(fitted_.begin(), fitted_.end(), *index) : fitted_.end();
                if (found == fitted_.end() || *found != *index) return;
                const auto at = static_cast<std::size_t>(found - fitted_.begin());
                if (slopes[at] == 0) met.push_back(at);
                slopes[at] += derivative * *price / us;
            });
            for (const std::size_t i : met) {
                all.gradient[i] += slopes[i] * error;
                for (const std::size_t j : met) all.matrix[i * n + j] += slopes[i] * slopes[j];
            }
            for (const std::size_t i : met) slopes[i] = 0;
        }
        for (std::size_t i = 0; i < n; ++i) {
            const double moved = logs[i] - start_[i];
            all.sum += hold_ * moved * moved;
            all.gradient[i] += hold_ * moved;
        }
        return all;
    }

    Samples& samples_;
    Prices prices_;
    double hold_;
    std::vector<std::size_t> fitted_;  // sorted
    std::vector<double> logs_, start_;
};

// By family, into one of the two fields.
void tell_errors(const Samples& samples, double FamilyFit::*field, std::map<FamilyId, FamilyFit>& families) {
    for (auto& [family, fit] : families) fit.*field = 0;
    for (const Sample& sample : samples.all()) {
        const double error = std::log(evaluate(sample.work)) - sample.log_us;
        families[sample.family].*field += error * error;
    }
    for (auto& [family, fit] : families) fit.*field = std::sqrt(fit.*field / static_cast<double>(fit.records));
}

// Digits that a fit is good for.
double rounded(double value) { return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr); }

}  // namespace

Result<PriceFit> fit_prices(const Chip& chip, const std::vector<Record>& records, const ArchCatalog& archs, int threads,
                            const FitOptions& options) {
    const FamilyId* family = options.family;
    PriceFit result{chip, {}, {}, {}, 0};
    Samples samples(chip, archs, threads);
    for (const Record& record : records) {
        if (!samples.add(record, family)) ++result.left_out;
    }
    if (samples.all().empty()) {
        return usage_error(fmt::format("none of {} records is of a {}kernel that {} has", records.size(),
                                       family ? fmt::format("{} ", name_of(*family)) : "", chip.name));
    }
    for (const Sample& sample : samples.all()) ++result.families[sample.family].records;
    tell_errors(samples, &FamilyFit::before, result.families);
    Fitting fitting(samples, chip.prices, options.hold);
    fitting.run();
    result.fitted = fitting.fitted();
    result.chip.prices = fitting.prices();
    for (const std::size_t index : result.fitted) {
        Price& price = all_prices(result.chip.prices)[index];
        price.value = rounded(price.value);
    }
    samples.set_prices(result.chip.prices);
    tell_errors(samples, &FamilyFit::after, result.families);
    for (const PriceGroup& group : price_groups()) {
        for (std::size_t i = 0; i < group.prices.size() && group.backend == chip.backend; ++i) {
            const std::size_t index = group.first + i;
            if (!std::binary_search(result.fitted.begin(), result.fitted.end(), index)) result.unused.push_back(index);
        }
    }
    return result;
}

}  // namespace tilewise
