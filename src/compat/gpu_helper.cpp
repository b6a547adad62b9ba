// SPDX-License-Identifier: MIT
// gpu_helper M N K [--validate]: selects, runs and times one matrix product and says so in the JSON of the original's
// helper of that name. Inputs are random, and the validation judges the result against a reference in double.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "config/arch_catalog.hpp"
#include "device/cpu/host_cpu.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"
#include "select/bench.hpp"
#include "select/checked_run.hpp"

namespace tilewise::compat {
namespace {

constexpr const char* kHelp =
    "usage: gpu_helper M N K [--validate] [--dtype D] [--layout L] [--device D] [--threads N]\n"
    "\n"
    "Selects, runs and times C = A B on random data and prints JSON: problem, kernel, execution, status and with\n"
    "--validate validation. Exit code 0: success; 1: an error or a wrong result; 2: usage.\n"
    "\n"
    "  --dtype D    fp16 unless given, or TILEWISE_COMPAT_DTYPE\n"
    "  --layout L   rcr unless given, or TILEWISE_COMPAT_LAYOUT\n"
    "  --device D   cpu, cuda:0, hip:0, ...; auto unless given, or TILEWISE_COMPAT_DEVICE: the first GPU, without one "
    "the "
    "CPU\n"
    "  --threads N  of the CPU\n";

constexpr int kUsageExit = 2;

struct Arguments {
    std::vector<std::int64_t> sizes;  // M, N, K
    bool validate = false, help = false;
    std::string dtype = "fp16", layout = "rcr", device = "auto";
    int threads = 0;
};

std::string environment_or(const char* name, const std::string& otherwise) {
    const char* value = secure_getenv(name);
    return value && *value ? value : otherwise;
}

Result<Arguments> parse(const std::vector<std::string_view>& words) {
    Arguments out;
    out.dtype = environment_or("TILEWISE_COMPAT_DTYPE", out.dtype);
    out.layout = environment_or("TILEWISE_COMPAT_LAYOUT", out.layout);
    out.device = environment_or("TILEWISE_COMPAT_DEVICE", out.device);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        std::string* text = word == "--dtype"    ? &out.dtype
                            : word == "--layout" ? &out.layout
                            : word == "--device" ? &out.device
                                                 : nullptr;
        if (word == "--validate") {
            out.validate = true;
        } else if (word == "--help" || word == "-h") {
            out.help = true;
        } else if (text || word == "--threads") {
            if (++i == words.size()) return usage_error(fmt::format("{} needs a value", word));
            const auto number = parse_integer(words[i]);
            if (text) {
                *text = words[i];
            } else if (number && *number > 0 && *number < 1 << 20) {
                out.threads = static_cast<int>(*number);
            } else {
                return usage_error(fmt::format("--threads takes a whole number above 0, not '{}'", words[i]));
            }
        } else if (const auto size = parse_integer(word)) {
            out.sizes.push_back(*size);
        } else {
            return usage_error(fmt::format("'{}' is no size and no option", word));
        }
    }
    if (!out.help && out.sizes.size() != 3) return usage_error("need three sizes: M N K");
    return out;
}

Json shape_json(const Arguments& arguments) {
    return Json::object({{"M", arguments.sizes[0]}, {"N", arguments.sizes[1]}, {"K", arguments.sizes[2]}});
}

// How many of the judged elements are right. A failure that no single element shows leaves none to be sure of.
Json validation_json(const VerifyReport& report) {
    const std::int64_t wrong = report.ok ? 0 : report.failed > 0 ? report.failed : report.checked;
    const std::int64_t right = report.checked - wrong;
    const double accuracy =
        report.checked > 0 ? 100.0 * static_cast<double>(right) / static_cast<double>(report.checked) : 0.0;
    return Json::object({{"accuracy", accuracy},
                         {"max_error", report.max_error},
                         {"tolerance", report.tolerance},
                         {"correct_elements", right},
                         {"total_elements", report.checked},
                         {"method", name_of(report.method)}});
}

Result<Runtime> open_device(const Arguments& arguments, const ArchCatalog& archs) {
    RuntimeOptions options;
    options.device_options.threads = arguments.threads;
    if (arguments.device != "auto") {
        options.device = arguments.device;
        return open_runtime(options, archs);
    }
    for (const char* gpu : {"cuda:0", "hip:0"}) {
        options.device = gpu;
        if (auto runtime = open_runtime(options, archs)) return runtime;
    }
    options.device = "cpu";
    return open_runtime(options, archs);
}

Result<Problem> problem_of(const Arguments& arguments) {
    const auto size = [&](std::size_t i) { return fmt::format("{}", arguments.sizes[i]); };
    return problem_from_fields(Op::gemm, {{"m", size(0), "M"},
                                          {"n", size(1), "N"},
                                          {"k", size(2), "K"},
                                          {"dtype", arguments.dtype, "--dtype"},
                                          {"layout", arguments.layout, "--layout"}});
}

Result<Json> run(const Arguments& arguments) {
    const auto problem = problem_of(arguments);
    if (!problem) return problem.error();
    const auto archs = archs_here();
    if (!archs) return archs.error();
    auto runtime = open_device(arguments, *archs);
    if (!runtime) return runtime.error();
    CheckedRunOptions options;
    options.validate = arguments.validate;
    const auto checked = run_checked(*runtime, *problem, {}, options);
    if (!checked) return checked.error();
    const auto timed = bench_problem(*runtime, *problem, {}, false);
    if (!timed) return timed.error();
    const double us = timed->rows.empty() ? checked->us : timed->rows.front().us;
    const std::string& kernel = checked->plan.kernel->name;
    Json json = Json::object(
        {{"problem", shape_json(arguments)},
         {"kernel", kernel},
         {"selected_kernel", kernel},
         {"device", runtime->device->name()},
         {"execution",
          Json::object({{"time_ms", us / 1e3}, {"tflops", flops(*problem) / us / 1e6}, {"flops", flops(*problem)}})}});
    if (checked->report) json.set("validation", validation_json(*checked->report));
    const bool wrong = checked->report && !checked->report->ok;
    json.set("status", wrong ? "validation failed" : "success");
    return json;
}

int main_of(const std::vector<std::string_view>& words) {
    const auto arguments = parse(words);
    if (!arguments) {
        std::fprintf(stderr, "gpu_helper: %s\n%s", arguments.error().message.c_str(), kHelp);
        return kUsageExit;
    }
    if (arguments->help) return std::fputs(kHelp, stdout), 0;
    const auto answer = run(*arguments);
    if (!answer) {
        const bool none = answer.error().code == ErrorCode::unsupported;
        std::puts(Json::object({{"problem", shape_json(*arguments)},
                                {"error", none ? "No kernel selected" : "Failed"},
                                {"reason", answer.error().message},
                                {"status", "error"}})
                      .dump(2)
                      .c_str());
        return 1;
    }
    std::puts(answer->dump(2).c_str());
    return *answer->find("status")->string() == "success" ? 0 : 1;
}

}  // namespace
}  // namespace tilewise::compat

int main(int argc, char** argv) { return tilewise::compat::main_of({argv + 1, argv + argc}); }
