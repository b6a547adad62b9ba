// SPDX-License-Identifier: MIT
// cpu_conv: tilewise's convolutions on one thread of this CPU beside oneDNN, in one run and in all three directions.
// `make bench-cpu` installs the peers and runs it with all of them; without any it still times tilewise alone.
#include <fmt/core.h>

#include <cstdio>

#include "benchmarks/compare.hpp"
#include "benchmarks/program.hpp"

namespace tilewise::bench {
namespace {

constexpr const char* kUsage =
    "cpu_conv --problems FILE [--onednn FILE]... [--quick] [--seconds S] [--top N] [--only TEXT]... [--peers-only]\n"
    "  --problems FILE   the shapes to compare, a problem a line\n"
    "  --onednn FILE     a shared library to compare with; may be given several times\n"
    "  --quick           the smallest shapes of each family\n"
    "  --seconds S       of timing, for each library on each problem (0.12)\n"
    "  --top N           of our kernels the fastest of the model's first N is compared (8)\n"
    "  --only TEXT       cases whose 'direction type form family dimensions origin' contains the text, such as\n"
    "                    'conv_fwd fp32 plain' or '3d'; given several times, all of the texts\n"
    "  --peers-only      without tilewise: microseconds and GFLOPS of each library\n"
    "  --threads N       CPU threads (1); of several, the time that passes counts\n"
    "  --json FILE       append a line of JSON for each case\n"
    "  --skip N          leave out the first N of the wanted cases\n";

// 1x64x56x56 -> 128, 3x3 /2 p1 d1 g1: images, channels and pixels of x, channels of y, filter, strides and so on.
std::string shape_text(const Problem& problem) {
    const ConvShape& s = problem.conv;
    const auto extents = [](const Extents& e, bool short_form) {
        bool equal = true;
        for (int i = 1; i < e.rank; ++i) equal = equal && e[i] == e[0];
        std::string text = std::to_string(e[0]);
        for (int i = 1; i < e.rank && !(short_form && equal); ++i) text += fmt::format("x{}", e[i]);
        return text;
    };
    return fmt::format("{}x{}x{} -> {}, {} /{} p{} d{} g{}", s.n, s.c, extents(s.in, false), s.k,
                       extents(s.filter, false), extents(s.stride, true), extents(s.pad_before, true),
                       extents(s.dilation, true), s.g);
}

Status run(const Options& options) {
    if (options.problems.empty()) return usage_error(fmt::format("--problems is missing\n{}", kUsage));
    auto cases = make_conv_cases(options.problems, options.quick);
    if (!cases) return cases.error();
    std::vector<OnednnEngine> peers;
    Program program{{}, {}, {"direction", "type", "weights"}, shape_text, {}};
    for (const std::string& path : options.onednn) {
        auto engine = OnednnEngine::start(path);
        if (!engine) return engine.error();
        program.peers.push_back(engine->name());
        program.details.push_back(engine->details());
        peers.push_back(std::move(*engine));
    }
    program.compare = [&](const Case& of, Dispatcher& dispatcher) {
        return compare_conv(of, dispatcher, peers, options.compare);
    };
    return run_cases(*cases, options, program);
}

int main_of(int count, char** arguments) {
    auto options = parse_options(count, arguments, kUsage);
    if (options && options->compare.threads == 1) stay_on_one_cpu();
    const Status status = options ? run(*options) : Status(options.error());
    if (status) return 0;
    std::fprintf(stderr, "cpu_conv: %s\n", status.error().message.c_str());
    return static_cast<int>(status.error().code);
}

}  // namespace
}  // namespace tilewise::bench

int main(int count, char** arguments) { return tilewise::bench::main_of(count, arguments); }
