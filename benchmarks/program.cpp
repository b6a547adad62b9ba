// SPDX-License-Identifier: MIT
#include "benchmarks/program.hpp"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "base/json.hpp"
#include "benchmarks/summary.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

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

// A line of the file that --json names, with the fields of benchmarks/result_files.py.
std::string json_line(const Comparison& one, const std::vector<std::string>& peers) {
    Json times(Json::Object{});
    for (std::size_t i = 0; i < peers.size(); ++i) {
        if (one.peers_us[i]) times.set(peers[i], *one.peers_us[i]);
    }
    Json line = Json::object({{"problem", print_problem(one.of.problem)},
                              {"family", fmt::format("{}, {}", one.of.family, form_of(one.of))},
                              {"status", "ok"},
                              {"peers_us", times}});
    if (one.ours) {
        line.set("kernel", one.ours->kernel);
        line.set("default_us", one.ours->rules_us);
        line.set("measure_us", one.ours->us);
    }
    return line.dump();
}

Result<std::size_t> whole_number(std::string_view option, const std::string& value, long least) {
    char* end = nullptr;
    const long number = std::strtol(value.c_str(), &end, 10);
    if (value.empty() || *end != 0 || number < least) {
        return usage_error(fmt::format("{} takes a whole number of at least {}", option, least));
    }
    return static_cast<std::size_t>(number);
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
            auto top = whole_number(option, value, 1);
            if (!top) return top.error();
            options.compare.top = *top;
        } else if (option == "--skip") {
            auto skip = whole_number(option, value, 0);
            if (!skip) return skip.error();
            options.skip = *skip;
        } else if (option == "--threads") {
            auto threads = whole_number(option, value, 1);
            if (!threads) return threads.error();
            options.compare.threads = static_cast<int>(*threads);
        } else if (option == "--json") {
            options.json = value;
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

Status with_dispatcher(int threads, const std::function<Status(Dispatcher&)>& run) {
    auto catalog = ArchCatalog::embedded();
    if (!catalog) return catalog.error();
    auto arch = host_cpu_arch(*catalog);
    if (!arch) return arch.error();
    auto device = make_cpu_device(**arch, threads);
    if (!device) return device.error();
    auto settings = build_settings();
    if (!settings) return settings.error();
    Builder builder(std::move(*settings));
    Dispatcher dispatcher(**device, builder, nullptr);
    show(fmt::format("{}\n", (*device)->identity()));
    return run(dispatcher);
}

Status run_cases(const std::vector<Case>& cases, const Options& options, const Program& program) {
    std::ofstream json;
    if (!options.json.empty()) {
        json.open(options.json, std::ios::app);
        if (!json) return usage_error(fmt::format("{} cannot be written", options.json));
    }
    return with_dispatcher(options.compare.threads, [&](Dispatcher& dispatcher) -> Status {
        for (const std::string& line : program.details) show(fmt::format("{}\n", line));
        show("ratios: time of the peer / time of tilewise, in the order above; above 1, tilewise is faster\n\n");
        std::vector<Comparison> comparisons;
        std::size_t left_out = 0;
        for (const Case& one : cases) {
            if (!is_wanted(one, options) || left_out++ < options.skip) continue;
            auto result = program.compare(one, dispatcher);
            if (!result) return result.error();
            print_line(*result, program.shape(one.problem));
            if (json.is_open()) json << json_line(*result, program.peers) << std::endl;
            comparisons.push_back(std::move(*result));
        }
        show(fmt::format("\n{}", summary(comparisons, program.kinds, program.peers)));
        return {};
    });
}

}  // namespace tilewise::bench
