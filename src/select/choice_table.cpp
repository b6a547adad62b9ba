// SPDX-License-Identifier: MIT
#include "select/choice_table.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "config/fit.hpp"
#include "family/may_run.hpp"

namespace tilewise {
namespace {

// Adds the time that it lives to a part of the cost, if that is asked for.
class Timed {
public:
    explicit Timed(double* us) : us_(us) {
        if (us_) begin_ = std::chrono::steady_clock::now();
    }
    ~Timed() {
        if (us_) *us_ += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin_).count();
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

private:
    double* us_;
    std::chrono::steady_clock::time_point begin_;
};

// Where a kernel stands in a ranking: by priority, by time, and as the registry has it. The place tells priorities apart as well.
struct Rank {
    Priority priority;
    double us;
    std::uint32_t place;

    bool operator<(const Rank& other) const {
        if (priority != other.priority) return priority > other.priority;
        return us != other.us ? us < other.us : place < other.place;
    }
};

}  // namespace

ChoiceTable::ChoiceTable(const KernelList& kernels, const ArchSpec& arch) : arch_(arch) {
    std::vector<std::vector<Row>> groups;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const KernelPtr& kernel = kernels[i];
        const KernelConfig& config = kernel->config;
        const Family* family = find_family(config, arch);
        if (config.arch != arch.name || !kernel->available || !family) continue;
        auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Row>& rows) {
            return fits_alike(rows.front().kernel->config, config);
        });
        if (group == groups.end()) group = groups.emplace(groups.end());
        const auto columns = family->work.columns ? family->work.columns(config, arch) : WorkColumns{};
        group->push_back({kernel, family, static_cast<std::uint32_t>(i), columns});
    }
    for (std::vector<Row>& group : groups) {
        const auto begin = static_cast<std::uint32_t>(rows_.size());
        std::move(group.begin(), group.end(), std::back_inserter(rows_));
        buckets_.push_back({begin, static_cast<std::uint32_t>(rows_.size())});
    }
}

class ChoiceTable::Search {
public:
    Search(const ChoiceTable& table, const Problem& problem, int threads, std::size_t most, ChoiceCost* cost)
        : table_(table), work_(problem, table.arch_, threads), most_(most), cost_(cost ? *cost : ignored_) {
        is_timed_ = cost != nullptr;
    }

    std::vector<Candidate> run() {
        open_buckets();
        std::make_heap(open_.begin(), open_.end(), comes_later);
        while (!open_.empty()) {
            std::pop_heap(open_.begin(), open_.end(), comes_later);
            const Open next = open_.back();
            open_.pop_back();
            if (found_.size() == most_ && found_.back().rank < next.rank) break;
            look_at(next);
        }
        std::vector<Candidate> candidates;
        candidates.reserve(found_.size());
        for (const Found& found : found_) candidates.push_back({found.row->kernel, found.rank.us});
        if (first_plan_) candidates.front().launch = std::make_shared<const LaunchPlan>(std::move(*first_plan_));
        return candidates;
    }

private:
    // A kernel that is still to be looked at, by the least time that it can have.
    struct Open {
        Rank rank;
        std::uint32_t row;
        bool is_predicted;  // the time is the kernel's own, and its rules are kept
    };
    struct Found {
        Rank rank;
        const Row* row;
    };
    static bool comes_later(const Open& a, const Open& b) { return b.rank < a.rank; }

    double* part(double& us) { return is_timed_ ? &us : nullptr; }

    void open_buckets() {
        const Timed timed(part(cost_.bounds_us));
        open_.reserve(table_.rows_.size());
        for (const Bucket& bucket : table_.buckets_) {
            if (breaks_shared_rule(work_.view, table_.rows_[bucket.begin].kernel->config, table_.arch_)) continue;
            for (std::uint32_t i = bucket.begin; i < bucket.end; ++i) open(i);
        }
        cost_.bounded += static_cast<int>(open_.size());
    }

    void open(std::uint32_t index) {
        const Row& row = table_.rows_[index];
        const FamilyWork& work = row.family->work;
        double us = 0;
        if (work.least) us = work.least(work_, row.kernel->config, row.columns);
        // Without a bound, what is predicted is one; a plan that is searched for takes longer than either.
        const bool predicts = !work.least && !row.family->searches;
        if (predicts) {
            if (!may_run_itself(work_.view, row.kernel->config, table_.arch_, nullptr)) return;
            us = work.us(work_, row.kernel->config, nullptr);
        }
        open_.push_back({{row.kernel->priority, us, row.place}, index, predicts});
    }

    void look_at(const Open& next) {
        const Row& row = table_.rows_[next.row];
        Rank rank = next.rank;
        plan_.reset();
        if (!next.is_predicted) {
            ++cost_.planned;
            {
                const Timed timed(part(cost_.plans_us));
                if (!may_run_itself(work_.view, row.kernel->config, table_.arch_, &plan_)) return;
            }
            const Timed timed(part(cost_.analytic_us));
            ++cost_.predicted;
            rank.us = row.family->work.us(work_, row.kernel->config, plan_ ? &*plan_ : nullptr);
        }
        const auto place = std::upper_bound(found_.begin(), found_.end(), rank,
                                            [](const Rank& a, const Found& b) { return a < b.rank; });
        if (found_.size() == most_ && place == found_.end()) return;
        if (place == found_.begin()) std::swap(first_plan_, plan_);
        found_.insert(place, {rank, &row});
        if (found_.size() > most_) found_.pop_back();
    }

    const ChoiceTable& table_;
    const WorkProblem work_;
    const std::size_t most_;
    ChoiceCost ignored_;
    ChoiceCost& cost_;
    bool is_timed_ = false;
    std::vector<Open> open_;    // a heap, the least time first
    std::vector<Found> found_;  // in order
    std::optional<LaunchPlan> plan_, first_plan_;
};

std::vector<Candidate> ChoiceTable::first(const Problem& problem, int threads, std::size_t most,
                                          ChoiceCost* cost) const {
    return Search(*this, problem, threads, most, cost).run();
}

}  // namespace tilewise
