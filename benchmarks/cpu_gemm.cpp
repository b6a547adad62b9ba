// SPDX-License-Identifier: MIT
// cpu_gemm: tilewise's GEMM on one thread of this CPU beside OpenBLAS and oneDNN, in one run. `make bench-cpu` installs the
// peers and runs it with all of them; without any it still times tilewise alone.
#include <fmt/core.h>

#include <cstdio>

#include "benchmarks/compare.hpp"
#include "benchmarks/program.hpp"

namespace tilewise::bench {
namespace {

constexpr const char* kUsage =
    "cpu_gemm [--openblas FILE]... [--onednn FILE]... [--quick] [--seconds S] [--top N] [--only TEXT]...\n"
    "  --openblas, --onednn   a shared library to compare with; may be given several times\n"
    "  --quick                a few small problems\n"
    "  --seconds S            of timing, for each library on each problem (0.12)\n"
    "  --top N                of our kernels the fastest of the model's first N is compared (8)\n"
    "  --only TEXT            cases whose 'type form family' contains the text, such as 'fp32 plain' or 'odd'\n"
    "  --threads N            CPU threads (1); of several, the time that passes counts\n"
    "  --json FILE            append a line of JSON for each case\n"
    "  --skip N               leave out the first N of the wanted cases\n";

Status run(const Options& options) {
    std::vector<std::unique_ptr<Peer>> peers;
    Program program{{}, {}, {"type", "B"}, {}, {}};
    const auto add = [&](Result<std::unique_ptr<Peer>> peer) -> Status {
        if (!peer) return peer.error();
        program.peers.push_back((*peer)->name());
        program.details.push_back((*peer)->details());
        peers.push_back(std::move(*peer));
        return {};
    };
    for (const std::string& path : options.openblas) {
        if (auto status = add(load_openblas(path)); !status) return status;
    }
    for (const std::string& path : options.onednn) {
        if (auto status = add(load_onednn(path)); !status) return status;
    }
    program.shape = [](const Problem& p) { return fmt::format("{}x{}x{}", p.gemm.m, p.gemm.n, p.gemm.k); };
    program.compare = [&](const Case& of, Dispatcher& dispatcher) {
        return compare(of, dispatcher, peers, options.compare);
    };
    return run_cases(make_cases(options.quick), options, program);
}

int main_of(int count, char** arguments) {
    auto options = parse_options(count, arguments, kUsage);
    if (options && options->compare.threads == 1) stay_on_one_cpu();
    const Status status = options ? run(*options) : Status(options.error());
    if (status) return 0;
    std::fprintf(stderr, "cpu_gemm: %s\n", status.error().message.c_str());
    return static_cast<int>(status.error().code);
}

}  // namespace
}  // namespace tilewise::bench

int main(int count, char** arguments) { return tilewise::bench::main_of(count, arguments); }
