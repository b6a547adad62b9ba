// SPDX-License-Identifier: MIT
#include "benchmarks/cases.hpp"

#include <fmt/core.h>

#include <array>

namespace tilewise::bench {
namespace {

using Shape = std::array<std::int64_t, 3>;  // m, n, k

struct Family {
    const char* name;
    Layout layout;
    std::vector<Shape> shapes;
};

std::vector<Family> all_families() {
    Family squares{"squares", Layout::rrr, {}};
    for (const std::int64_t size : {64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048}) {
        squares.shapes.push_back({size, size, size});
    }
    // Weights lie as a linear layer keeps them: n rows of k values. Half the width of a 7B model, so that a run stays short.
    Family llm{"llm", Layout::rcr, {}};
    for (const std::int64_t tokens : {1, 16, 128, 512}) {
        llm.shapes.push_back({tokens, 2048, 2048});
        llm.shapes.push_back({tokens, 5504, 2048});
    }
    // Primes and neighbours of powers of two, thin in each direction.
    Family odd{"odd", Layout::rrr, {}};
    odd.shapes = {{77, 77, 77},    {100, 100, 100}, {101, 333, 257}, {1000, 17, 300},  {17, 1000, 300}, {1, 999, 1001},
                  {255, 255, 255}, {300, 300, 19},  {37, 61, 3001},  {513, 1025, 129}, {1021, 509, 769}};
    return {squares, llm, odd};
}

std::vector<Family> quick_families() {
    return {{"squares", Layout::rrr, {{64, 64, 64}, {128, 128, 128}}},
            {"llm", Layout::rcr, {{1, 256, 256}}},
            {"odd", Layout::rrr, {{77, 77, 77}, {37, 61, 129}}}};
}

struct Types {
    DType in, out;
};

}  // namespace

std::string form_of(const Case& of) { return of.packed ? "packed" : "plain"; }

std::vector<std::string> kind_of(const Case& of) {
    std::vector<std::string> kind;
    if (is_conv(of.problem.op)) kind.emplace_back(name_of(of.problem.op));
    kind.emplace_back(name_of(of.problem.dtype_a));
    kind.push_back(form_of(of));
    return kind;
}

std::string title_of(const Case& of) {
    std::string title;
    for (const std::string& word : kind_of(of)) title += word + " ";
    title += of.family;
    if (is_conv(of.problem.op)) title += fmt::format(" {}d {}", of.problem.conv.in.rank, of.origin);
    return title;
}

std::vector<Case> make_cases(bool quick) {
    const std::vector<Family> families = quick ? quick_families() : all_families();
    std::vector<Case> cases;
    for (const auto& [in, out] :
         {Types{DType::fp32, DType::fp32}, Types{DType::bf16, DType::bf16}, Types{DType::int8, DType::int32}}) {
        for (const bool packed : {false, true}) {
            for (const Family& family : families) {
                for (const auto& [m, n, k] : family.shapes) {
                    Problem problem;
                    problem.gemm.m = m, problem.gemm.n = n, problem.gemm.k = k;
                    problem.dtype_a = problem.dtype_b = in;
                    problem.dtype_out = out;
                    problem.layout = family.layout;
                    problem.packed_b = packed;
                    cases.push_back({family.name, problem, packed, ""});
                }
            }
        }
    }
    return cases;
}

}  // namespace tilewise::bench
