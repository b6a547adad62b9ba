// SPDX-License-Identifier: MIT
#include "select/measure_candidates.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "measure/bound_run.hpp"
#include "measure/scratch_sets.hpp"
#include "measure/tensors.hpp"
#include "measure/timing.hpp"
#include "problem/empty_problem.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

// Blocks of launches as the device times them: recorded when their number changes, replayed otherwise.
class RecordedBlocks {
public:
    RecordedBlocks(const BoundRun& run, Device& device) : run_(&run), device_(&device) {}

    double operator()(std::int64_t calls, int first_set) {
        if (!status) return 0;
        if (!recording_ || calls != calls_ || first_set != first_set_) {
            const auto sets = static_cast<std::int64_t>(run_->sets());
            auto recorded = device_->record(
                [run = run_, sets, first_set](Stream stream, std::int64_t i) {
                    return run->run(static_cast<std::size_t>((first_set + i) % sets), stream);
                },
                calls);
            if (!recorded) return status = recorded.error(), 0;
            recording_ = std::move(*recorded);
            calls_ = calls;
            first_set_ = first_set;
        }
        auto seconds = recording_->replay();
        if (!seconds) return status = seconds.error(), 0;
        return *seconds;
    }

    Status status;

private:
    const BoundRun* run_;
    Device* device_;
    std::unique_ptr<Recording> recording_;
    std::int64_t calls_ = 0;
    int first_set_ = 0;
};

// The caller's progress: one step for each kernel, and one for timing them all.
using ReportStep = std::function<void(std::size_t done, std::string_view doing)>;

// Kernels that are ready to be timed, each with what it was made from.
struct PreparedKernel {
    Measured measured;
    std::unique_ptr<BoundRun> run;  // its address must stay
};

std::vector<PreparedKernel> prepare_all(const Problem& problem, const KernelList& kernels, Device& device,
                                        Builder& builder, const ScratchSets& scratch, const ReportStep& report_step,
                                        std::vector<Failed>& failed) {
    std::vector<PreparedKernel> ready;
    for (const KernelPtr& kernel : kernels) {
        report_step(ready.size() + failed.size(), kernel->name);
        auto executable = Executable::prepare(problem, *kernel, device, builder);
        if (!executable) {
            failed.push_back({kernel, executable.error().message, failure_of(executable.error().code)});
            continue;
        }
        Measured made{kernel, executable->built().digest, 0, 0, 0, executable->notes()};
        auto bound = BoundRun::make(std::make_shared<const Executable>(std::move(*executable)), device, scratch.sets(),
                                    suggested_alpha(problem), problem.beta ? 1.0f : 0.0f);
        auto status = bound ? bound->run() : Status(bound.error());
        if (status) status = device.synchronize(kDefaultStream);
        if (!status) {
            failed.push_back({kernel, status.error().message});
            continue;
        }
        ready.push_back({std::move(made), std::make_unique<BoundRun>(std::move(*bound))});
    }
    return ready;
}

// The digest of a kernel that could not be made; empty where it cannot be told.
std::string digest_of_failed(const Problem& problem, const Kernel& kernel, const Device& device) {
    const auto request = build_request(kernel.config, device, chain_of(problem));
    const auto digest = request ? digest_of(*request) : Result<std::string>(request.error());
    return digest ? *digest : "";
}

// A store that fails does not fail the measurement: a note says so.
void record_outcome(const Problem& problem, const Device& device, const RecordStore& store, MeasureOutcome& outcome) {
    std::vector<Record> records;
    for (const Measured& measured : outcome.measured) {
        Record& one = records.emplace_back(record_of(problem, *measured.kernel, device, measured.code_digest));
        set_time(one, problem, measured.us);
        one.spread = measured.spread;
        one.samples = measured.samples;
    }
    for (const Failed& failed : outcome.failed) {
        Record& one = records.emplace_back(
            record_of(problem, *failed.kernel, device, digest_of_failed(problem, *failed.kernel, device)));
        one.status = failed.status;
        one.reason = failed.reason;
    }
    if (const auto status = store.append(records); !status) {
        outcome.notes.push_back({"records", status.error().code, status.error().message});
    }
}

}  // namespace

Result<MeasureOutcome> measure_candidates(const Problem& problem, const KernelList& kernels, Device& device,
                                          Builder& builder, const MeasureOptions& options) {
    if (is_empty(problem)) {
        return unsupported_error(
            fmt::format("{} has an empty dimension: there is nothing to time", print_problem(problem)));
    }
    constexpr int kMostSets = 64;
    auto scratch = ScratchSets::make(problem, device, 2 * device.arch().cache_bytes, options.max_bytes, kMostSets);
    if (!scratch) return scratch.error();
    MeasureOutcome outcome;
    const auto report_step = [&](std::size_t done, std::string_view doing) {
        if (options.progress) options.progress(done, kernels.size() + 1, doing);
    };
    std::vector<PreparedKernel> prepared =
        prepare_all(problem, kernels, device, builder, *scratch, report_step, outcome.failed);

    report_step(kernels.size(), "timing");
    TimingOptions timing;
    timing.sets = static_cast<int>(scratch->sets().size());
    timing.max_seconds = options.seconds_each;
    timing.warmup_seconds = options.seconds_each / 10;
    std::vector<RecordedBlocks> recorded;
    recorded.reserve(prepared.size());
    std::vector<TimedBlock> blocks;
    blocks.reserve(prepared.size());
    for (const PreparedKernel& kernel : prepared) recorded.emplace_back(*kernel.run, device);
    for (RecordedBlocks& one : recorded) blocks.emplace_back(std::ref(one));
    const auto results = interleave_blocks(blocks, timing);
    for (std::size_t i = 0; i < results.size(); ++i) {
        Measured& measured = prepared[i].measured;
        if (!recorded[i].status) {
            outcome.failed.push_back({measured.kernel, recorded[i].status.error().message});
            continue;
        }
        measured.us = results[i].seconds * 1e6;
        measured.spread = results[i].spread;
        measured.samples = static_cast<std::int64_t>(results[i].samples.size());
        outcome.measured.push_back(std::move(measured));
    }
    std::stable_sort(outcome.measured.begin(), outcome.measured.end(),
                     [](const Measured& a, const Measured& b) { return a.us < b.us; });
    if (options.records) record_outcome(problem, device, *options.records, outcome);
    return outcome;
}

}  // namespace tilewise
