// SPDX-License-Identifier: MIT
#include "select/measure_candidates.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "family/family.hpp"
#include "family/may_run.hpp"
#include "family/work_problem.hpp"
#include "measure/time_kernels.hpp"
#include "problem/empty_problem.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

// The caller's progress: one step for each kernel, and one for timing them all.
using ReportStep = std::function<void(std::size_t done, std::string_view doing)>;

// Kernels that are ready to be timed, each with what it was made from.
struct PreparedKernels {
    std::vector<Measured> measured;
    std::vector<std::shared_ptr<const Executable>> executables;
};

PreparedKernels prepare_all(const Problem& problem, const KernelList& kernels, Device& device, Builder& builder,
                            const ReportStep& report_step, std::vector<Failed>& failed) {
    PreparedKernels ready;
    for (const KernelPtr& kernel : kernels) {
        report_step(ready.measured.size() + failed.size(), kernel->name);
        auto executable = Executable::prepare(problem, *kernel, device, builder);
        if (!executable) {
            failed.push_back({kernel, executable.error().message, failure_of(executable.error().code)});
            continue;
        }
        Measured& made = ready.measured.emplace_back();
        made.kernel = kernel;
        made.code_digest = executable->built().digest;
        made.notes = executable->notes();
        ready.executables.push_back(std::make_shared<const Executable>(std::move(*executable)));
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
        set_time(one, problem, device, measured.us);
        one.predicted_us = predicted_time(problem, *measured.kernel, device);
        one.spread = measured.spread;
        one.samples = measured.samples;
        one.time2_us = measured.us_again;
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

std::optional<double> predicted_time(const Problem& problem, const Kernel& kernel, const Device& device) {
    const ArchSpec& arch = device.arch();
    if (!has_families(arch.backend) || !may_run(ProblemView(problem), kernel.config, arch)) return std::nullopt;
    return predicted_us(WorkProblem(problem, arch, device.max_threads()), kernel.config);
}

Result<MeasureOutcome> measure_candidates(const Problem& problem, const KernelList& kernels, Device& device,
                                          Builder& builder, const MeasureOptions& options) {
    if (is_empty(problem)) {
        return unsupported_error(
            fmt::format("{} has an empty dimension: there is nothing to time", print_problem(problem)));
    }
    MeasureOutcome outcome;
    const auto report_step = [&](std::size_t done, std::string_view doing) {
        if (options.progress) options.progress(done, kernels.size() + 1, doing);
    };
    PreparedKernels prepared = prepare_all(problem, kernels, device, builder, report_step, outcome.failed);
    report_step(kernels.size(), "timing");
    OperandArena own(device);
    const auto times = time_kernels(problem, prepared.executables, device, options.arena ? *options.arena : own,
                                    options.timing.value_or(usual_timing(device)));
    if (!times) return times.error();
    for (std::size_t i = 0; i < times->size(); ++i) {
        const KernelTime& time = (*times)[i];
        Measured& measured = prepared.measured[i];
        if (!time.status) {
            outcome.failed.push_back({measured.kernel, time.status.error().message});
            continue;
        }
        measured.us = time.us;
        measured.spread = time.spread;
        measured.samples = time.samples;
        measured.us_again = time.us_again;
        outcome.measured.push_back(std::move(measured));
    }
    std::stable_sort(outcome.measured.begin(), outcome.measured.end(),
                     [](const Measured& a, const Measured& b) { return a.us < b.us; });
    if (options.records) record_outcome(problem, device, *options.records, outcome);
    return outcome;
}

}  // namespace tilewise
