// SPDX-License-Identifier: MIT
// tilewise bench: times kernels on problems, with rotating tensors, and sets the times against the roof: the larger of
// arithmetic at the arch's peak and bytes at its memory bandwidth.
#include <fmt/core.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"
#include "select/measure_candidates.hpp"

namespace tilewise::cli {
namespace {

// The least time the device could take.
double roof_us(const Problem& problem, const ArchSpec& arch, int threads) {
    double tflops = 0;
    for (const Peak& peak : arch.peaks) {
        if (peak.dtype == problem.dtype_a) tflops = peak.tflops;
    }
    const double compute = tflops > 0 ? flops(problem) / (tflops * 1e6 * threads) : 0;
    return std::max(compute, bytes_moved(problem) / (arch.memory_gbps * 1e3));
}

struct Row {
    const Problem* problem;
    Measured measured;
};

Json row_to_json(const Row& row, const ArchSpec& arch, int threads) {
    const double us = row.measured.us;
    return Json::object({{"problem", print_problem(*row.problem)},
                         {"kernel", row.measured.kernel->name},
                         {"us", us},
                         {"spread", row.measured.spread},
                         {"tflops", flops(*row.problem) / us / 1e6},
                         {"gbps", bytes_moved(*row.problem) / us / 1e3},
                         {"roof", roof_us(*row.problem, arch, threads) / us}});
}

// The kernels to time: every candidate, or the one that is chosen.
Result<KernelList> kernels_of(const Context& context, Runtime& runtime, const Problem& problem) {
    if (!context.arguments.has("all")) {
        auto plan = choose_plan(context, runtime, problem);
        if (!plan) return plan.error();
        return KernelList{plan->kernel};
    }
    auto options = select_options(context);
    if (!options) return options.error();
    options->strategy = Strategy::rules;
    auto selection = runtime.dispatcher->select(problem, *options);
    if (!selection) return selection.error();
    KernelList kernels;
    for (const Candidate& candidate : selection->candidates) kernels.push_back(candidate.kernel);
    return kernels;
}

}  // namespace

Result<int> run_bench(Context& context) {
    for (const std::string_view other : {"strategy", "kernel"}) {
        if (context.arguments.has("all") && context.arguments.has(other)) {
            return usage_error(fmt::format("--all times every kernel; --{} chooses one: give one of them", other));
        }
    }
    auto problems = read_problems(context);
    if (!problems) return problems.error();
    auto runtime = open_runtime(context);
    if (!runtime) return runtime.error();
    const ArchSpec& arch = runtime->device->arch();
    const int threads = runtime->device->max_threads();
    Json::Array results, failures;
    Table table({"us", "spread %", "GFLOPS", "GB/s", "% of roof", "kernel", "problem"});
    for (const Problem& problem : *problems) {
        if (problem.op != Op::gemm)
            return unsupported_error(fmt::format("{} has no kernels that run yet", name_of(problem.op)));
        auto kernels = kernels_of(context, *runtime, problem);
        if (!kernels) return kernels.error();
        MeasureOptions options;
        options.seconds_each = context.arguments.has("all") ? 0.05 : 0.5;
        options.progress = progress_of(static_cast<std::size_t>(&problem - problems->data()), problems->size());
        auto outcome = measure_candidates(problem, *kernels, *runtime->device, *runtime->builder, options);
        if (!outcome) return outcome.error();
        for (const Measured& measured : outcome->measured) {
            const Json row = row_to_json({&problem, measured}, arch, threads);
            results.push_back(row);
            const double us = measured.us;
            table.add({fmt::format("{:.2f}", us), fmt::format("{:.1f}", measured.spread * 100),
                       fmt::format("{:.1f}", flops(problem) / us / 1e3),
                       fmt::format("{:.1f}", bytes_moved(problem) / us / 1e3),
                       fmt::format("{:.1f}", 100 * roof_us(problem, arch, threads) / us), measured.kernel->name,
                       print_problem(problem)});
        }
        for (const Failed& failed : outcome->failed) {
            failures.push_back(Json::object(
                {{"problem", print_problem(problem)}, {"kernel", failed.kernel->name}, {"reason", failed.reason}}));
            print_error(fmt::format("tilewise: {}: {}", failed.kernel->name, failed.reason));
        }
    }
    const bool failed = !failures.empty();
    if (context.json) {
        print(Json::object({{"device", runtime->device->identity()},
                            {"results", Json(std::move(results))},
                            {"failures", Json(std::move(failures))}})
                  .dump());
    } else {
        print(fmt::format("{}\n{}", runtime->device->identity(), table.text()));
    }
    return failed ? static_cast<int>(ErrorCode::check_failed) : 0;
}

}  // namespace tilewise::cli
