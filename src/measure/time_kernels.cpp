// SPDX-License-Identifier: MIT
#include "measure/time_kernels.hpp"

#include <algorithm>
#include <utility>

#include "measure/bound_run.hpp"
#include "measure/tensors.hpp"

namespace tilewise {
namespace {

// Calls of one kernel as the device times them: a recording that is made when their number changes, and replayed.
class RecordedCalls {
public:
    RecordedCalls(Device& device, std::size_t first_set) : device_(&device), first_set_(first_set) {}

    Status bind(std::shared_ptr<const Executable> executable, std::span<const Operands> sets, const Problem& problem,
                void* workspace) {
        auto bound = BoundRun::make(std::move(executable), *device_, sets, suggested_alpha(problem),
                                    problem.beta ? 1.0f : 0.0f, workspace);
        if (!bound) return bound.error();
        run_ = std::make_unique<BoundRun>(std::move(*bound));  // its address must stay
        auto status = run_->run();                             // the first loads code and faults in memory
        return status ? device_->synchronize(kDefaultStream) : status;
    }

    Result<double> operator()(std::int64_t calls) {
        if (!recording_ || calls != calls_) {
            auto recorded = device_->record(
                [run = run_.get(), first = first_set_](Stream stream, std::int64_t i) {
                    return run->run((first + static_cast<std::size_t>(i)) % run->sets(), stream);
                },
                calls);
            if (!recorded) return recorded.error();
            recording_ = std::move(*recorded);
            calls_ = calls;
        }
        return recording_->replay();
    }

private:
    Device* device_;
    std::size_t
        first_set_;  // kernels begin with different ones, so that few calls do not always find the same in the cache
    std::unique_ptr<BoundRun> run_;
    std::unique_ptr<Recording> recording_;
    std::int64_t calls_ = 0;
};

Result<void*> shared_workspace(std::span<const std::shared_ptr<const Executable>> executables, OperandArena& arena) {
    std::int64_t bytes = 0;
    for (const auto& executable : executables) bytes = std::max(bytes, executable->workspace_bytes());
    return arena.workspace(bytes);
}

}  // namespace

ShortTimingOptions usual_timing(const Device& device) {
    constexpr double kGpuBlockSeconds = 0.4e-3, kCpuBlockSeconds = 2e-3;
    ShortTimingOptions options;
    options.block_seconds = device.arch().is_gpu() ? kGpuBlockSeconds : kCpuBlockSeconds;
    return options;
}

Result<std::vector<KernelTime>> time_kernels(const Problem& problem,
                                             std::span<const std::shared_ptr<const Executable>> executables,
                                             Device& device, OperandArena& arena, ShortTimingOptions options) {
    const auto sets = arena.sets(problem, {.cache_bytes = 2 * device.arch().cache_bytes});
    if (!sets) return sets.error();
    const auto workspace = shared_workspace(executables, arena);
    if (!workspace) return workspace.error();
    options.sets = static_cast<int>(sets->size());
    std::vector<KernelTime> times(executables.size());
    std::vector<std::size_t> bound;  // those that are timed
    std::vector<std::unique_ptr<RecordedCalls>> recorded;
    for (std::size_t i = 0; i < executables.size(); ++i) {
        if (options.before) options.before(i);
        auto calls = std::make_unique<RecordedCalls>(device, i % sets->size());
        times[i].status = calls->bind(executables[i], *sets, problem, *workspace);
        if (!times[i].status) continue;
        bound.push_back(i);
        recorded.push_back(std::move(calls));
    }
    std::vector<TimedCalls> calls;
    calls.reserve(recorded.size());
    for (const auto& one : recorded) calls.emplace_back(std::ref(*one));
    if (options.before) options.before = [&, tell = options.before](std::size_t i) { tell(bound[i]); };
    if (options.clock) {
        options.clock = [&, clock = options.clock](std::size_t i, double seconds) { return clock(bound[i], seconds); };
    }
    const auto results = time_shortly(calls, options);
    for (std::size_t i = 0; i < results.size(); ++i) {
        KernelTime& time = times[bound[i]];
        time.status = results[i].status;
        time.us = results[i].seconds * 1e6;
        time.spread = results[i].spread;
        time.samples = results[i].samples;
        if (results[i].seconds_again) time.us_again = *results[i].seconds_again * 1e6;
    }
    return times;
}

}  // namespace tilewise
