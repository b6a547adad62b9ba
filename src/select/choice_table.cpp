// SPDX-License-Identifier: MIT
#include "select/choice_table.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
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
    // A kernel that is still to be looked at, by the least time that it can have.
    struct Open {
        Rank rank;
        std::uint32_t row;
    };
    struct Found {
        Rank rank;
        const Row* row;
        std::optional<WorkParts> parts;
    };

public:
    // A search to learn also finds the best of each algorithm, and notes the parts of what it finds.
    enum class For { choosing, learning };

    Search(const ChoiceTable& table, const Problem& problem, int threads, For purpose, ChoiceCost* cost)
        : table_(table), work_(problem, table.arch_, threads), cost_(cost ? *cost : ignored_) {
        is_timed_ = cost != nullptr;
        if (purpose == For::learning) best_.emplace(table_.algorithms_.size());
        open_buckets();
    }

    // The next of the ranking, as long as this is not asked for another; null after the last, or where `ends` says so of a rank that none
    // that is left comes before.
    template <class Ends>
    const Found* next(const Ends& ends) {
        while (!open_.empty() && (found_.empty() || !(found_.front().rank < open_.front().rank))) {
            if (ends(open_.front().rank)) return nullptr;
            std::pop_heap(open_.begin(), open_.end(), comes_later<Open>);
            const Open next = open_.back();
            open_.pop_back();
            look_at(next);
        }
        if (found_.empty() || ends(found_.front().rank)) return nullptr;
        std::pop_heap(found_.begin(), found_.end(), comes_later<Found>);
        ranked_.push_back(found_.back());
        found_.pop_back();
        return &ranked_.back();
    }

    // With room for more.
    std::vector<Candidate> first(std::size_t most, std::size_t more = 0) {
        std::vector<Candidate> candidates;
        while (candidates.size() < most) {
            const Found* found = next([](const Rank&) { return false; });
            if (!found) break;
            if (candidates.empty()) candidates.reserve(std::min(most + more, 1 + found_.size() + open_.size()));
            candidates.push_back(candidate_of(*found));
            if (candidates.size() == 1 && first_plan_)
                candidates.front().launch = std::make_shared<const LaunchPlan>(std::move(*first_plan_));
        }
        return candidates;
    }

    std::vector<Candidate> to_learn() {
        std::vector<Candidate> candidates = first(kFirstLearned, kOtherLearned);
        if (candidates.size() < kFirstLearned) return candidates;
        for (const Found& found : best_of_others()) candidates.push_back(candidate_of(found));
        return candidates;
    }

    void collect(PaddedOffers& offers) {
        bool looks_at_all = false;  // where narrow ones may win, as many are offered as there are
        const auto ends = [&](const Rank& rank) {
            if (looks_at_all || offers.may_win_whole(rank.priority, rank.us)) return false;
            looks_at_all = may_narrow_win(offers);
            return !looks_at_all;
        };
        const Found* found = next(ends);
        while (found && offers.take(candidate_of(*found))) found = next(ends);
    }

private:
    template <class T>
    static bool comes_later(const T& a, const T& b) {
        return b.rank < a.rank;
    }

    // Whether one of the kernels that are left may be the best offer by running fewer channels than it is ranked for.
    bool may_narrow_win(const PaddedOffers& offers) const {
        std::vector<bool> is_left(table_.rows_.size());
        for (const Open& open : open_) is_left[open.row] = true;
        for (const Found& found : found_) is_left[static_cast<std::size_t>(found.row - table_.rows_.data())] = true;
        return std::ranges::any_of(table_.buckets_, [&](const Bucket& bucket) {
            std::optional<PaddedOffers::Narrow> narrow;
            std::optional<WorkProblem> work;
            for (std::uint32_t i = bucket.begin; i < bucket.end; ++i) {
                if (!is_left[i]) continue;
                const Row& row = table_.rows_[i];
                if (!work) {  // the same for the whole bucket
                    narrow = offers.narrow(row.kernel->config);
                    if (!narrow) return false;
                    work.emplace(narrow->problem, table_.arch_, work_.threads);
                }
                if (offers.may_win(row.kernel->priority, bound_of(row, *work) + narrow->copying_us)) return true;
            }
            return false;
        });
    }

    static double bound_of(const Row& row, const WorkProblem& work) {
        const FamilyWork& family = row.family->work;
        if (family.least) return family.least(work, row.kernel->config, row.columns);
        return row.family->searches ? 0 : family.us(work, row.kernel->config, nullptr);
    }

    double* part(double& us) { return is_timed_ ? &us : nullptr; }

    void open_buckets() {
        const Timed timed(part(cost_.bounds_us));
        open_.reserve(table_.rows_.size());
        for (const Bucket& bucket : table_.buckets_) {
            if (breaks_shared_rule(work_.view, table_.rows_[bucket.begin].kernel->config, table_.arch_)) continue;
            for (std::uint32_t i = bucket.begin; i < bucket.end; ++i) open(i);
        }
        std::make_heap(open_.begin(), open_.end(), comes_later<Open>);
        cost_.bounded += static_cast<int>(open_.size());
    }

    void open(std::uint32_t index) {
        const Row& row = table_.rows_[index];
        const FamilyWork& work = row.family->work;
        const KernelConfig& config = row.kernel->config;
        Rank rank{row.kernel->priority, 0, row.place};
        // A plan that is searched for takes longer than a prediction without one, which takes no longer than a bound.
        const bool is_found = !work.least && !row.family->searches;
        if (is_found && !may_run_itself(work_.view, config, table_.arch_, nullptr)) return;
        rank.us = bound_of(row, work_);
        if (is_found) return keep({rank, &row, {}});
        if (rank.us < std::numeric_limits<double>::infinity()) open_.push_back({rank, index});
    }

    void look_at(const Open& next) {
        const Row& row = table_.rows_[next.row];
        Found found{next.rank, &row, {}};
        plan_.reset();
        ++cost_.planned;
        {
            const Timed timed(part(cost_.plans_us));
            if (!may_run_itself(work_.view, row.kernel->config, table_.arch_, &plan_)) return;
        }
        const Timed timed(part(cost_.analytic_us));
        ++cost_.predicted;
        found.rank.us = time_of(row);
        if (best_) found.parts = parts_;
        keep(found);
    }

    // With the plan, where there is one.
    void keep(const Found& found) {
        if (best_) keep_best(found);
        if (!first_ || found.rank < *first_) {
            first_ = found.rank;
            std::swap(first_plan_, plan_);
        }
        found_.push_back(found);
        std::push_heap(found_.begin(), found_.end(), comes_later<Found>);
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
    std::vector<Found> best_of_others() {
        const double slowest = kSlowestLearned * ranked_.front().rank.us;
        std::vector<bool> is_among(table_.algorithms_.size());
        for (const Found& found : ranked_) is_among[found.row->algorithm] = true;
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
        return others;
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
    ChoiceCost ignored_;
    ChoiceCost& cost_;
    bool is_timed_ = false;
    std::vector<Open> open_;                                 // a heap, the least time first
    std::vector<Found> found_;                               // likewise
    std::vector<Found> ranked_;                              // those that were asked for, in order
    std::optional<std::vector<std::optional<Found>>> best_;  // of each algorithm, where a model is to learn of it
    WorkParts parts_{};
    std::optional<LaunchPlan> plan_, first_plan_;
    std::optional<Rank> first_;  // of all found
};

std::vector<Candidate> ChoiceTable::first(const Problem& problem, int threads, std::size_t most,
                                          ChoiceCost* cost) const {
    return Search(*this, problem, threads, Search::For::choosing, cost).first(most);
}

void ChoiceTable::collect(const Problem& whole, int threads, PaddedOffers& offers) const {
    Search(*this, whole, threads, Search::For::choosing, nullptr).collect(offers);
}

std::vector<Candidate> ChoiceTable::to_learn(const Problem& problem, int threads, ChoiceCost* cost) const {
    return Search(*this, problem, threads, Search::For::learning, cost).to_learn();
}

}  // namespace tilewise
