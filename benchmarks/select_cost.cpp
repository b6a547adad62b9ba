// SPDX-License-Identifier: MIT
// select_cost: what a choice costs that was not made before. Asks a dispatcher for the plans of distinct problems, as a program that
// meets them for the first time does, on a device that runs nothing; kernels of the types are listed beforehand.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>

#include "build/build_settings.hpp"
#include "config/arch_catalog.hpp"
#include "device/null/null_device.hpp"
#include "problem/problem.hpp"
#include "problem/problem_text.hpp"
#include "select/dispatcher.hpp"

namespace tilewise {
namespace {

constexpr int kProblems = 200;  // of each operation

class Shapes {
public:
    std::string gemm() {
        return fmt::format("gemm:m={},n={},k={},dtype={},layout={}", size(), size(), size(), dtype(),
                           pick({"rcr", "rcr", "rrr", "ccr"}));
    }
    // Dense, grouped and depthwise layers in equal parts.
    std::string conv(Op op) {
        const int channels = 8 * between(1, 64), pixels = between(7, 112), filter = 2 * between(0, 3) + 1;
        const int kind = between(0, 2), groups = kind == 0 ? 1 : kind == 1 ? channels / 8 : channels;
        return fmt::format("{}:n={},g={},c={},k={},in={}x{},filter={}x{},stride={},pad={},dtype={}", name_of(op),
                           between(1, 64), groups, channels, channels, pixels, pixels, filter, filter, between(1, 2),
                           filter / 2, dtype());
    }

private:
    int between(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
    int size() { return between(0, 3) == 0 ? between(1, 64) : 8 * between(1, 1024); }
    const char* pick(std::initializer_list<const char*> words) {
        return words.begin()[between(0, static_cast<int>(words.size()) - 1)];
    }
    const char* dtype() { return pick({"bf16", "fp16", "fp32"}); }

    std::mt19937 random_{17};
};

std::vector<Problem> problems_of(Op op) {
    Shapes shapes;
    std::vector<Problem> problems;
    while (problems.size() < kProblems) {
        auto problem = parse_problem(op == Op::gemm ? shapes.gemm() : shapes.conv(op));
        const bool is_new = problem && std::find(problems.begin(), problems.end(), *problem) == problems.end();
        if (is_new && !check_problem(*problem)) problems.push_back(std::move(*problem));
    }
    return problems;
}

// Microseconds of each choice, sorted; those of problems that no kernel takes count as well.
std::vector<double> times_of(Dispatcher& dispatcher, const std::vector<Problem>& problems) {
    std::map<DType, bool> listed;
    std::vector<double> times;
    for (const Problem& problem : problems) {
        if (listed.try_emplace(problem.dtype_a, true).second) {
            Problem other = problem;
            other.workspace_bytes = 1 << 20;
            static_cast<void>(dispatcher.plan(other));
        }
        const auto begin = std::chrono::steady_clock::now();
        static_cast<void>(dispatcher.plan(problem));
        times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(times.begin(), times.end());
    return times;
}

int run() {
    const auto archs = ArchCatalog::embedded();
    auto settings = build_settings();
    if (!archs || !settings) return 1;
    settings->cache_dir = std::filesystem::temp_directory_path() / fmt::format("tilewise-select-cost-{}", getpid());
    std::puts("arch        operation        median us   P90 us   most us");
    for (const char* name : {"cpu-avx2", "cpu-amx", "sm_80", "sm_90a"}) {
        NullDevice device(**archs->find(name));
        Builder builder(*settings);
        Dispatcher dispatcher(device, builder, nullptr);
        for (const Op op : kAllOps) {
            const std::vector<double> times = times_of(dispatcher, problems_of(op));
            std::puts(fmt::format("{:11} {:16} {:9.1f} {:8.1f} {:9.1f}", name, name_of(op), times[times.size() / 2],
                                  times[times.size() * 9 / 10], times.back())
                          .c_str());
        }
    }
    std::filesystem::remove_all(settings->cache_dir);
    return 0;
}

}  // namespace
}  // namespace tilewise

int main() { return tilewise::run(); }
