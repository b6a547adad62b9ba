// SPDX-License-Identifier: MIT
#include "measure/short_timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rounding.hpp"
#include "base/statistics.hpp"

namespace tilewise {
namespace {

constexpr int kTries = 3;  // for a clock that does not go forward
constexpr double kMostCalls = 1e6;

class ShortlyTimed {
public:
    ShortlyTimed(const TimedCalls& call, std::size_t index, const ShortTimingOptions& options)
        : call_(call), index_(index), options_(options) {}

    bool is_well() const { return result.status.ok(); }
    bool is_long() const { return once_ > options_.long_seconds; }
    // The least time so far: one sample that an interruption made longer does not make a kernel slow.
    double least() const { return std::min(once_, samples_.empty() ? once_ : quantile(samples_, 0)); }

    void call_once() {
        once_ = sample(1);
        const double enough = std::clamp(std::ceil(options_.block_seconds / once_), 1.0, kMostCalls);
        const auto calls = static_cast<std::int64_t>(enough);
        const std::int64_t sets = std::max(options_.sets, 1);
        // Whole rounds of sets, where there is time for one: every block is the same work then.
        result.calls = calls < sets ? calls : round_up(calls, sets);
    }

    void time_block() { samples_.push_back(sample(result.calls)); }

    void finish_first() {
        result.seconds = median(samples_);
        result.spread = relative_spread(samples_);
        result.samples = static_cast<std::int64_t>(samples_.size());
        samples_.clear();
    }
    void finish_again() { result.seconds_again = median(samples_); }

    ShortTime result;

private:
    double sample(std::int64_t calls) {
        for (int i = 0; i < kTries && is_well(); ++i) {
            if (options_.before) options_.before(index_);
            auto seconds = call_(calls);
            if (seconds && options_.clock) seconds = options_.clock(index_, *seconds);
            if (!seconds) {
                result.status = seconds.error();
            } else if (std::isfinite(*seconds) && *seconds > 0) {
                return *seconds / static_cast<double>(calls);
            }
        }
        if (is_well()) {
            result.status = Error{ErrorCode::check_failed, "the clock did not go forward while the kernel was timed"};
        }
        return std::numeric_limits<double>::infinity();
    }

    const TimedCalls& call_;
    std::size_t index_;
    const ShortTimingOptions& options_;
    std::vector<double> samples_;
    double once_ = 0;
};

using Group = std::vector<ShortlyTimed*>;

Group well(const Group& all) {
    Group kept;
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept),
                 [](const ShortlyTimed* one) { return one->is_well(); });
    return kept;
}

// Every other round runs backwards: no kernel always follows the same other.
void time_rounds(Group group, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        for (ShortlyTimed* one : group) {
            if (one->is_well()) one->time_block();
        }
        std::reverse(group.begin(), group.end());
        if (round == 0) std::erase_if(group, [](const ShortlyTimed* one) { return one->is_long(); });
    }
}

// Those that take at most so many times as long as the fastest, by `time`.
template <class Time>
Group within(const Group& group, double times, Time time) {
    double best = std::numeric_limits<double>::infinity();
    for (const ShortlyTimed* one : group) best = std::min(best, time(*one));
    Group kept;
    std::copy_if(group.begin(), group.end(), std::back_inserter(kept),
                 [&](const ShortlyTimed* one) { return time(*one) <= times * best; });
    return kept;
}

}  // namespace

std::vector<ShortTime> time_shortly(std::span<const TimedCalls> kernels, const ShortTimingOptions& options) {
    std::vector<ShortlyTimed> timed;
    timed.reserve(kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) timed.emplace_back(kernels[i], i, options);
    Group group;
    for (ShortlyTimed& one : timed) {
        one.call_once();
        if (one.is_well()) group.push_back(&one);
    }
    time_rounds(group, 1);
    group = well(group);
    Group few = within(group, options.far, [](const ShortlyTimed& one) { return one.least(); });
    std::erase_if(few, [](const ShortlyTimed* one) { return one->is_long(); });
    time_rounds(few, options.blocks - 1);
    group = well(group);
    for (ShortlyTimed* one : group) one->finish_first();
    const Group best = within(group, options.near, [](const ShortlyTimed& one) { return one.result.seconds; });
    time_rounds(best, options.blocks_again);
    for (ShortlyTimed* one : well(best)) one->finish_again();

    std::vector<ShortTime> results;
    results.reserve(timed.size());
    for (ShortlyTimed& one : timed) results.push_back(std::move(one.result));
    return results;
}

}  // namespace tilewise
