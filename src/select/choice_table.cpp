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
        const Algorithm algorithm = algorithm_of(config);
        auto known = std::ranges::find(algorithms_, algorithm);
        if (known == algorithms_.end()) known = algorithms_.insert(known, algorithm);
        group->push_back({kernel, family, static_cast<std::uint32_t>(i), columns,
                          static_cast<std::uint16_t>(known - algorithms_.begin())});
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

    // Also finds the best of each algorithm, and notes the parts of what it finds.
    void learn() { best_.emplace(table_.algorithms_.size()); }

    std::vector<Candidate> run() {
        open_buckets();
        std::make_heap(open_.begin(), open_.end(), comes_later);
        while (!open_.empty()) {
            std::pop_heap(open_.begin(), open_.end(), comes_later);
            const Open next = open_.back();
            open_.pop_back();
            if (found_.size() == most_ && found_.back().rank < next.rank) {
                open_.push_back(next);
                break;
            }
            look_at(next);
        }
        if (best_ && found_.size() == most_) add_other_algorithms();
        std::vector<Candidate> candidates;
        candidates.reserve(found_.size());
        for (const Found& found : found_) candidates.push_back(candidate_of(found));
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
        std::optional<WorkParts> parts;
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
            rank.us = time_of(row);
        }
        Found found{rank, &row, {}};
        if (best_ && !next.is_predicted) found.parts = parts_;
        if (best_) keep_best(found);
        const auto place = std::upper_bound(found_.begin(), found_.end(), rank,
                                            [](const Rank& a, const Found& b) { return a < b.rank; });
        if (found_.size() == most_ && place == found_.end()) return;
        if (place == found_.begin()) std::swap(first_plan_, plan_);
        found_.insert(place, found);
        if (found_.size() > most_) found_.pop_back();
    }

    double time_of(const Row& row) {
        const LaunchPlan* plan = plan_ ? &*plan_ : nullptr;
        if (!best_) return row.family->work.us(work_, row.kernel->config, plan);
        const NotedParts noted(parts_);
        return row.family->work.parts(work_, row.kernel->config, plan).value;
    }

    void keep_best(const Found& found) {
        std::optional<Found>& best = (*best_)[found.row->algorithm];
        if (!best || found.rank < best->rank) best = found;
    }

    // Of the algorithms that are not among the first, the best, as far as they are not much slower.
    void add_other_algorithms() {
        const double slowest = kSlowestLearned * found_.front().rank.us;
        std::vector<bool> is_among(table_.algorithms_.size());
        for (const Found& found : found_) is_among[found.row->algorithm] = true;
        std::erase_if(open_, [&](const Open& open) {
            return open.rank.us > slowest || is_among[table_.rows_[open.row].algorithm];
        });
        std::sort(open_.begin(), open_.end(), [](const Open& a, const Open& b) { return a.rank < b.rank; });
        for (const Open& open : open_) {
            const auto& best = (*best_)[table_.rows_[open.row].algorithm];
            if (!best || open.rank < best->rank) look_at(open);
        }
        std::vector<Found> others;
        for (std::size_t i = 0; i < best_->size(); ++i) {
            const auto& best = (*best_)[i];
            if (best && !is_among[i] && best->rank.us <= slowest) others.push_back(*best);
        }
        std::sort(others.begin(), others.end(), [](const Found& a, const Found& b) { return a.rank < b.rank; });
        others.resize(std::min(others.size(), kOtherLearned));
        found_.insert(found_.end(), others.begin(), others.end());
    }

    Candidate candidate_of(const Found& found) const {
        Candidate candidate{found.row->kernel, found.rank.us};
        candidate.parts = found.parts;
        // What was predicted without a plan needs none for its parts either.
        if (best_ && !found.parts) candidate.parts = work_parts_of(work_, found.row->kernel->config);
        return candidate;
    }

    const ChoiceTable& table_;
    const WorkProblem work_;
    const std::size_t most_;
    ChoiceCost ignored_;
    ChoiceCost& cost_;
    bool is_timed_ = false;
    std::vector<Open> open_;                                 // a heap, the least time first
    std::vector<Found> found_;                               // in order
    std::optional<std::vector<std::optional<Found>>> best_;  // of each algorithm, where a model is to learn of it
    WorkParts parts_{};
    std::optional<LaunchPlan> plan_, first_plan_;
};

std::vector<Candidate> ChoiceTable::first(const Problem& problem, int threads, std::size_t most,
                                          ChoiceCost* cost) const {
    return Search(*this, problem, threads, most, cost).run();
}

std::vector<Candidate> ChoiceTable::to_learn(const Problem& problem, int threads, ChoiceCost* cost) const {
    Search search(*this, problem, threads, kFirstLearned, cost);
    search.learn();
    return search.run();
}

}  // namespace tilewise
