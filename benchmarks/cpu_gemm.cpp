// SPDX-License-Identifier: MIT
// cpu_gemm: tilewise's GEMM on one thread of this CPU beside OpenBLAS and oneDNN, in one run. `make bench-cpu` installs the
// peers and runs it with all of them; without any it still times tilewise alone.
#include <fmt/core.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "benchmarks/compare.hpp"
#include "benchmarks/summary.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "problem/facts.hpp"

namespace tilewise::bench {
namespace {

constexpr const char* kUsage =
    "cpu_gemm [--openblas FILE]... [--onednn FILE]... [--quick] [--seconds S] [--only TEXT]\n"
    "  --openblas, --onednn   a shared library to compare with; may be given several times\n"
    "  --quick                a few small problems\n"
    "  --seconds S            of timing, for each library on each problem (0.12)\n"
    "  --only TEXT            cases whose 'type form family' contains the text, such as 'fp32 plain' or 'odd'\n";

// At once, so that a long run can be watched through a pipe.
void show(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

struct Options {
    std::vector<std::unique_ptr<Peer>> peers;
    bool quick = false;
    CompareOptions compare;
    std::string only;
};

Result<Options> parse_options(int count, char** arguments) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view option = arguments[i];
        if (option == "--quick") {
            options.quick = true;
            continue;
        }
        if (i + 1 == count)
            return usage_error(fmt::format("'{}' is no option, or lacks its value\n{}", option, kUsage));
        const std::string value = arguments[++i];
        if (option == "--openblas" || option == "--onednn") {
            auto peer = option == "--openblas" ? load_openblas(value) : load_onednn(value);
            if (!peer) return peer.error();
            options.peers.push_back(std::move(*peer));
        } else if (option == "--seconds") {
            char* end = nullptr;
            options.compare.seconds = std::strtod(value.c_str(), &end);
            if (*end != 0 || !(options.compare.seconds > 0)) return usage_error("--seconds takes a number above 0");
        } else if (option == "--only") {
            options.only = value;
        } else {
            return usage_error(fmt::format("unknown option '{}'\n{}", option, kUsage));
        }
    }
    return options;
}

// Before any library counts the CPUs: with one to run on, all of them use one thread. The last, since the first gets the
// interrupts on many machines.
void stay_on_one_cpu() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET(last, &allowed)) --last;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    (void)sched_setaffinity(0, sizeof one,
                            &one);  // where it is not allowed, the libraries are told "one thread" as well
}

std::string title_of(const Case& of) {
    return fmt::format("{} {} {}", name_of(of.problem.dtype_a), form_of(of.problem), of.family);
}

void print_line(const Comparison& one) {
    const GemmShape& g = one.of.problem.gemm;
    std::string line =
        fmt::format("{:20} {:>15} {:10.1f} us {:6.1f} GFLOPS ", title_of(one.of),
                    fmt::format("{}x{}x{}", g.m, g.n, g.k), one.us, flops(one.of.problem) / one.us / 1e3);
    for (const auto& us : one.peers_us) line += us ? fmt::format(" {:5.2f}", *us / one.us) : "     -";
    show(fmt::format("{}   model {:.2f}  {}\n", line, one.us / one.rules_us, one.kernel));
}

Status run(const Options& options) {
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
    std::vector<std::string> names;
    for (const auto& peer : options.peers) {
        names.push_back(peer->name());
        show(fmt::format("{}\n", peer->details()));
    }
    show(fmt::format(
        "ratios: time of the peer / time of tilewise, in the order above; above 1, tilewise is faster\n\n"));
    std::vector<Comparison> comparisons;
    for (const Case& one : make_cases(options.quick)) {
        if (title_of(one).find(options.only) == std::string::npos) continue;
        auto result = compare(one, dispatcher, options.peers, options.compare);
        if (!result) return result.error();
        print_line(*result);
        comparisons.push_back(std::move(*result));
    }
    show(fmt::format("\n{}", summary(comparisons, names)));
    return {};
}

int main_of(int count, char** arguments) {
    stay_on_one_cpu();
    auto options = parse_options(count, arguments);
    const Status status = options ? run(*options) : Status(options.error());
    if (status) return 0;
    std::fprintf(stderr, "cpu_gemm: %s\n", status.error().message.c_str());
    return static_cast<int>(status.error().code);
}

}  // namespace
}  // namespace tilewise::bench

int main(int count, char** arguments) { return tilewise::bench::main_of(count, arguments); }
