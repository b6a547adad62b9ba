// SPDX-License-Identifier: MIT
#include "measure/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/rounding.hpp"
#include "base/statistics.hpp"

namespace tilewise {
namespace {

// One callable being timed.
class Timed {
public:
    Timed(const TimedBlock& block, const TimingOptions& options) : block_(block), options_(options) {}

    // Calls until the warm-up is over, in runs of growing length; the last run tells how many calls make a block. The
    // first call, which may load code and fault in memory, only counts if there is time for no other.
    void warm_up() {
        double last = run(1), elapsed = last;
        std::int64_t count = 1;
        // A call that takes no time at all has failed, and more calls will not take longer.
        while (elapsed < options_.warmup_seconds && last > 0) {
            last = run(count) / static_cast<double>(count);
            elapsed += last * static_cast<double>(count);
            if (last * static_cast<double>(count) < options_.block_seconds) count *= 2;
        }
        const double calls = last > 0 ? std::ceil(options_.block_seconds / last) : 1;
        const auto enough = static_cast<std::int64_t>(std::clamp(calls, 1.0, kMostCalls));
        // Whole rounds of sets, where there is time for one: every block is the same work then, and begins with the same set.
        result_.calls_per_block = enough < options_.sets ? enough : round_up(enough, std::max(options_.sets, 1));
    }

    void time_block() {
        const double seconds = run(result_.calls_per_block);
        used_ += seconds;
        result_.samples.push_back(seconds / static_cast<double>(result_.calls_per_block));
    }

    bool is_spent() const {
        return !result_.samples.empty() &&
               (used_ >= options_.max_seconds || static_cast<int>(result_.samples.size()) >= options_.max_blocks);
    }

    bool is_done() const {
        const bool enough = static_cast<int>(result_.samples.size()) >= std::max(options_.min_blocks, 1);
        return is_spent() || (enough && relative_spread(result_.samples) <= options_.target_spread);
    }

    TimingResult result() {
        result_.seconds = median(result_.samples);
        result_.fastest = quantile(result_.samples, 0);
        result_.spread = relative_spread(result_.samples);
        return std::move(result_);
    }

private:
    static constexpr double kMostCalls = 1e9;

    double run(std::int64_t count) {
        const double seconds = block_(count, set_);
        set_ = static_cast<int>((set_ + count) % std::max(options_.sets, 1));
        return seconds;
    }

    const TimedBlock& block_;
    const TimingOptions& options_;
    TimingResult result_;
    double used_ = 0;
    int set_ = 0;
};

}  // namespace

double monotonic_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TimingResult time_calls(const TimedCall& call, const TimingOptions& options) {
    return interleave({&call, 1}, options).front();
}

std::vector<TimingResult> interleave(std::span<const TimedCall> calls, const TimingOptions& options) {
    std::vector<TimedBlock> blocks;
    blocks.reserve(calls.size());
    for (const TimedCall& call : calls) {
        blocks.emplace_back([&](std::int64_t count, int set) {
            const double begin = options.clock();
            for (std::int64_t i = 0; i < count; ++i) {
                call(set);
                if (++set >= options.sets) set = 0;
            }
            return options.clock() - begin;
        });
    }
    return interleave_blocks(blocks, options);
}

std::vector<TimingResult> interleave_blocks(std::span<const TimedBlock> blocks, const TimingOptions& options) {
    std::vector<Timed> timed;
    timed.reserve(blocks.size());
    for (const TimedBlock& block : blocks) timed.emplace_back(block, options);
    for (Timed& one : timed) one.warm_up();
    // Whoever agrees with itself already still takes part, so that all see the same moments. Every other round runs
    // backwards: no callable always follows the same other.
    const auto is_done = [](const Timed& one) { return one.is_done(); };
    for (bool backwards = false; !std::all_of(timed.begin(), timed.end(), is_done); backwards = !backwards) {
        for (std::size_t i = 0; i < timed.size(); ++i) {
            Timed& one = timed[backwards ? timed.size() - 1 - i : i];
            if (!one.is_spent()) one.time_block();
        }
    }
    std::vector<TimingResult> results;
    results.reserve(timed.size());
    for (Timed& one : timed) results.push_back(one.result());
    return results;
}

}  // namespace tilewise
