// SPDX-License-Identifier: MIT
// The C functions on learned selection models: features, what trees say of them, and a model's times.
#include "capi/models.hpp"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/json_object.hpp"
#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "capi/query.hpp"
#include "device/cpu/thread_pool.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "learn/features.hpp"
#include "learn/model.hpp"
#include "learn/model_store.hpp"

namespace tilewise::capi {

ModelStore& usual_models() {
    static ModelStore models(ModelStore::usual_folders());
    return models;
}

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// {"arch", "threads"}, both optional.
struct Target {
    const ArchSpec* arch;
    int threads;
};
Result<Target> read_target(const char* text) {
    auto json = Json::parse(text && *text ? text : "{}");
    if (!json) return json.error();
    JsonObject from(*json, "query");
    if (!from.ok()) return from.finish().error();
    const std::string arch_name = from.text_or("arch", "");
    constexpr std::int64_t kMostThreads = 1 << 16;
    std::int64_t threads = from.integer_or("threads", 1, kMostThreads, 0);
    if (auto status = from.finish(); !status) return status.error();
    const auto arch = read_arch(arch_name.c_str());
    if (!arch) return arch.error();
    if (threads == 0) {
        const auto usual = default_threads();
        if (!usual) return usual.error();
        threads = *usual;
    }
    return Target{*arch, static_cast<int>(threads)};
}

Result<Op> read_op(const char* text) {
    if (!text) return usage_error("the operation is NULL");
    return parse_enum<Op>(text);
}

// Kernels of a problem, those that may run it priced.
class Priced {
public:
    static Result<Priced> read(const char* problem_text, const char* query_json, const char* const* names,
                               std::int64_t count) {
        if (count < 0 || (count > 0 && !names))
            return usage_error("the list of kernels is NULL or has a negative length");
        auto problem = read_problem_argument(problem_text);
        if (!problem) return problem.error();
        const auto target = read_target(query_json);
        if (!target) return target.error();
        Priced priced(std::move(*problem), *target);
        for (std::int64_t i = 0; i < count; ++i) {
            const auto config = read_config_argument(names[i]);
            if (!config) return config.error();
            priced.configs_.push_back(*config);
        }
        return priced;
    }

    Op op() const { return problem_.op; }

    // Calls with the features of the problem, the priced kernels, and the place of each in the list.
    template <class Use>
    void use(const Use& with) const {
        const WorkProblem work(problem_, *target_.arch, target_.threads);
        std::vector<PricedKernel> kernels;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < configs_.size(); ++i) {
            const KernelConfig& config = configs_[i];
            const Family* family = find_family(config, *target_.arch);
            std::optional<LaunchPlan> plan;
            if (config.arch != target_.arch->name || !family ||
                !may_run(work.view, config, *target_.arch, nullptr, &plan))
                continue;
            PricedKernel kernel{&config};
            const NotedParts noted(kernel.parts);
            kernel.analytic_us = family->work.parts(work, config, plan ? &*plan : nullptr).value;
            kernels.push_back(kernel);
            places.push_back(i);
        }
        with(ProblemFeatures(work), kernels, places);
    }

private:
    Priced(Problem problem, const Target& target) : problem_(std::move(problem)), target_(target) {}

    Problem problem_;
    Target target_;
    std::vector<KernelConfig> configs_{};
};

void fill_none(double* out, std::size_t count) {
    if (out) std::fill_n(out, count, kNone);
}

Status features(const char* problem, const char* query_json, const char* const* names, std::int64_t count, double* rows,
                double* analytic_us) {
    const auto priced = Priced::read(problem, query_json, names, count);
    if (!priced) return priced.error();
    const std::size_t columns = feature_schema(priced->op()).columns.size(), asked = static_cast<std::size_t>(count);
    fill_none(rows, asked * columns);
    fill_none(analytic_us, asked);
    priced->use([&](const ProblemFeatures& problem_features, std::span<const PricedKernel> kernels,
                    std::span<const std::size_t> places) {
        for (std::size_t i = 0; i < kernels.size(); ++i) {
            const PricedKernel& kernel = kernels[i];
            if (analytic_us) analytic_us[places[i]] = kernel.analytic_us;
            if (rows)
                problem_features.fill(*kernel.config, kernel.analytic_us, kernel.parts, rows + places[i] * columns);
        }
    });
    return {};
}

Status predict(const char* directory, const double* rows, std::int64_t count, double* scores) {
    if (!directory) return usage_error("the directory of the model is NULL");
    if (count < 0 || (count > 0 && (!rows || !scores)))
        return usage_error("rows or scores are NULL, or their count is negative");
    const auto model = read_model(directory);
    if (!model) return model.error();
    const auto asked = static_cast<std::size_t>(count);
    model->forest().score(std::span(rows, asked * model->forest().column_count()), std::span(scores, asked));
    return {};
}

Status predict_times(const char* directory, const char* problem, const char* query_json, const char* const* names,
                     std::int64_t count, double* us, double* analytic_us, double* error) {
    if (!directory) return usage_error("the directory of the model is NULL");
    const auto model = read_model(directory);
    if (!model) return model.error();
    const auto priced = Priced::read(problem, query_json, names, count);
    if (!priced) return priced.error();
    if (priced->op() != model->card().op) {
        return usage_error(fmt::format("the model '{}' is for {}, the problem is {}", directory,
                                       name_of(model->card().op), name_of(priced->op())));
    }
    for (double* out : {us, analytic_us, error}) fill_none(out, static_cast<std::size_t>(count));
    priced->use([&](const ProblemFeatures& problem_features, std::span<const PricedKernel> kernels,
                    std::span<const std::size_t> places) {
        std::vector<Estimate> estimates(kernels.size());
        model->estimate(problem_features, kernels, estimates);
        for (std::size_t i = 0; i < kernels.size(); ++i) {
            if (us) us[places[i]] = estimates[i].us;
            if (analytic_us) analytic_us[places[i]] = kernels[i].analytic_us;
            if (error) error[places[i]] = estimates[i].error.value_or(kNone);
        }
    });
    return {};
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_feature_schema(const char* op, char** json) {
    return tilewise::capi::give_text(json, [&]() -> tilewise::Result<std::string> {
        const auto read = tilewise::capi::read_op(op);
        if (!read) return read.error();
        return schema_to_json(tilewise::feature_schema(*read), *read).dump();
    });
}

tilewise_status tilewise_features(const char* problem, const char* query_json, const char* const* kernels,
                                  int64_t count, double* rows, double* analytic_us) {
    return tilewise::capi::guarded(
        [&] { return tilewise::capi::features(problem, query_json, kernels, count, rows, analytic_us); });
}

tilewise_status tilewise_kernel_kind(const char* kernel, char** kind) {
    return tilewise::capi::give_text(kind, [&]() -> tilewise::Result<std::string> {
        const auto config = tilewise::capi::read_config_argument(kernel);
        if (!config) return config.error();
        return print_kind(tilewise::kind_of(*config));
    });
}

tilewise_status tilewise_predict(const char* model_directory, const double* rows, int64_t count, double* scores) {
    return tilewise::capi::guarded([&] { return tilewise::capi::predict(model_directory, rows, count, scores); });
}

tilewise_status tilewise_predict_times(const char* model_directory, const char* problem, const char* query_json,
                                       const char* const* kernels, int64_t count, double* us, double* analytic_us,
                                       double* error) {
    return tilewise::capi::guarded([&] {
        return tilewise::capi::predict_times(model_directory, problem, query_json, kernels, count, us, analytic_us,
                                             error);
    });
}

}  // extern "C"
