// SPDX-License-Identifier: MIT
#include "benchmarks/program.hpp"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "benchmarks/summary.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "problem/facts.hpp"

namespace tilewise::bench {
namespace {

void print_line(const Comparison& one, const std::string& shape) {
    std::string line = fmt::format("{:42} {:>44}", title_of(one.of), shape);
    if (one.ours) {
        line += fmt::format(" {:10.1f} us {:6.1f} GFLOPS ", one.ours->us, flops(one.of.problem) / one.ours->us / 1e3);
        for (const auto& us : one.peers_us) line += us ? fmt::format(" {:5.2f}", *us / one.ours->us) : "     -";
        line += fmt::format("   model {:.2f}  {}", one.ours->us / one.ours->rules_us, one.ours->kernel);
    } else {
        for (const auto& us : one.peers_us) {
            line += us ? fmt::format(" {:10.1f} us {:6.1f} GFLOPS", *us, flops(one.of.problem) / *us / 1e3) : " -";
        }
    }
    show(fmt::format("{}{}{}\n", line, one.peer_code.empty() ? "" : "  | ", one.peer_code));
}

}  // namespace

bool is_wanted(const Case& of, const Options& options) {
    const std::string title = title_of(of);
    return std::all_of(options.only.begin(), options.only.end(),
                       [&](const std::string& text) { return title.find(text) != std::string::npos; });
}

void show(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

Result<Options> parse_options(int count, char** arguments, const char* usage) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view option = arguments[i];
        if (option == "--quick" || option == "--peers-only") {
            (option == "--quick" ? options.quick : options.compare.peers_only) = true;
            continue;
        }
        if (i + 1 == count) return usage_error(fmt::format("'{}' is no option, or lacks its value\n{}", option, usage));
        const std::string value = arguments[++i];
        if (option == "--openblas" || option == "--onednn") {
            (option == "--openblas" ? options.openblas : options.onednn).push_back(value);
        } else if (option == "--seconds") {
            char* end = nullptr;
            options.compare.seconds = std::strtod(value.c_str(), &end);
            if (*end != 0 || !(options.compare.seconds > 0)) return usage_error("--seconds takes a number above 0");
        } else if (option == "--top") {
            char* end = nullptr;
            const long top = std::strtol(value.c_str(), &end, 10);
            if (*end != 0 || top < 1) return usage_error("--top takes a whole number above 0");
            options.compare.top = static_cast<std::size_t>(top);
        } else if (option == "--only") {
            options.only.push_back(value);
        } else if (option == "--problems") {
            options.problems = value;
        } else {
            return usage_error(fmt::format("unknown option '{}'\n{}", option, usage));
        }
    }
    return options;
}

// The last, since the first gets the interrupts on many machines.
void stay_on_one_cpu() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET(last, &allowed)) --last;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    // Where it is not allowed, the libraries are told "one thread" as well.
    (void)sched_setaffinity(0, sizeof one, &one);
}

Status with_dispatcher(const std::function<Status(Dispatcher&)>& run) {
    auto catalog = ArchCatalog::embedded();
    if (!catalog) return catalog.error();
    auto arch = host_cpu_arch(*catalog);
    if (!arch) return arch.error();
    auto device = make_cpu_device(**arch, 1);
    if (!device) return device.error();
    auto settings = build_settings();
    if (!settings) return settings.error();
    Builder builder(std::move(*settings));
    Dispatcher dispatcher(**device, builder, nullptr);
    show(fmt::format("{}\n", (*device)->identity()));
    return run(dispatcher);
}

Status run_cases(const std::vector<Case>& cases, const Options& options, const Program& program) {
    return with_dispatcher([&](Dispatcher& dispatcher) -> Status {
        for (const std::string& line : program.details) show(fmt::format("{}\n", line));
        show("ratios: time of the peer / time of tilewise, in the order above; above 1, tilewise is faster\n\n");
        std::vector<Comparison> comparisons;
        for (const Case& one : cases) {
            if (!is_wanted(one, options)) continue;
            auto result = program.compare(one, dispatcher);
            if (!result) return result.error();
            print_line(*result, program.shape(one.problem));
            comparisons.push_back(std::move(*result));
        }
        show(fmt::format("\n{}", summary(comparisons, program.kinds, program.peers)));
        return {};
    });
}

}  // namespace tilewise::bench
