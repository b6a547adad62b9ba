// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "benchmarks/cases.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::bench {
namespace {

constexpr std::int64_t kAlignBytes = 64;  // what frameworks give their tensors

struct Shape {
    Problem problem;
    std::string origin;
};

std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(' ');
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \r") - begin + 1);
}

Result<std::vector<Shape>> read_shapes(const std::string& path) {
    std::ifstream file(path);
    if (!file) return usage_error(fmt::format("cannot read the problems in {}", path));
    std::vector<Shape> shapes;
    for (std::string line; std::getline(file, line);) {
        const std::size_t comment = std::min(line.find('#'), line.size());
        const std::string text = trimmed(line.substr(0, comment));
        if (text.empty()) continue;
        auto problem = parse_problem(text);
        if (!problem) return usage_error(fmt::format("{}: {}", path, problem.error().message));
        if (!is_conv(problem->op)) return usage_error(fmt::format("{}: '{}' is no convolution", path, text));
        shapes.push_back({*problem, trimmed(line.substr(std::min(comment + 1, line.size())))});
    }
    return shapes;
}

std::string family_of(const Problem& problem) {
    if (is_depthwise(problem)) return "depthwise";
    return problem.conv.g > 1 ? "grouped" : "dense";
}

// The few of each family with the least work.
std::vector<Shape> smallest(std::vector<Shape> shapes) {
    constexpr int kOfEach = 2;
    std::stable_sort(shapes.begin(), shapes.end(),
                     [](const Shape& a, const Shape& b) { return flops(a.problem) < flops(b.problem); });
    std::vector<Shape> kept;
    for (const Shape& shape : shapes) {
        const auto same = [&](const Shape& other) { return family_of(other.problem) == family_of(shape.problem); };
        if (std::count_if(kept.begin(), kept.end(), same) < kOfEach) kept.push_back(shape);
    }
    return kept;
}

}  // namespace

Result<std::vector<Case>> make_conv_cases(const std::string& path, bool quick) {
    auto shapes = read_shapes(path);
    if (!shapes) return shapes.error();
    if (quick) *shapes = smallest(std::move(*shapes));
    std::vector<Case> cases;
    for (const Op op : {Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight}) {
        for (const DType type : {DType::fp32, DType::bf16, DType::int8}) {
            if (type == DType::int8 && op != Op::conv_fwd) continue;  // no gradients in int8
            for (const bool packed : {false, true}) {
                for (Shape shape : *shapes) {
                    shape.problem.op = op;
                    shape.problem.dtype_a = shape.problem.dtype_b = type;
                    shape.problem.dtype_out = default_output(type);
                    shape.problem.packed_b = packed && op != Op::conv_bwd_weight;
                    shape.problem.align_bytes = kAlignBytes;
                    cases.push_back({family_of(shape.problem), shape.problem, packed, shape.origin});
                }
            }
        }
    }
    return cases;
}

}  // namespace tilewise::bench
