// SPDX-License-Identifier: MIT
// A ranking of one's own in place of the library's model: here the kernel with the smallest tile for small problems, the
// largest for large ones. It runs whatever the heuristic names first, and nothing else.
#include <algorithm>
#include <cstdio>

#include "gemm_case.hpp"

namespace {

long tile_area(const std::string& kernel) {
    const auto config = tilewise::KernelConfig::parse(kernel);
    const auto tile = config ? config->get("tile") : config.error();
    long m = 0, n = 0;
    if (tile) std::sscanf(tile->c_str(), "%ldx%ld", &m, &n);
    return m * n;
}

}  // namespace

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "Choose kernels by a function of one's own.", {});
    const auto device = example::need(args.open_device(), "device");
    constexpr double kSmallFlops = 2e6;
    const auto by_area = [](const tilewise::Problem& problem, const std::vector<tilewise::Candidate>& candidates) {
        std::vector<std::pair<long, std::string>> order;
        for (const auto& candidate : candidates) order.emplace_back(tile_area(candidate.kernel), candidate.kernel);
        std::sort(order.begin(), order.end());
        if (problem.flops() > kSmallFlops) std::reverse(order.begin(), order.end());
        std::vector<std::string> names;
        for (const auto& [area, name] : order) names.push_back(name);
        return names;
    };
    tilewise::Dispatcher dispatcher(device);
    dispatcher.set_heuristic(by_area);

    bool right = true;
    long areas[2] = {};
    for (const int i : {0, 1}) {
        const long size = i == 0 ? 40 : 200;
        const example::GemmCase gemm(device, size, size, size);
        const auto plan = example::need(dispatcher.select(gemm.problem), "select");
        right = right && plan.source() == "callback";
        areas[i] = tile_area(plan.kernel());
        example::need(dispatcher.run(gemm.problem, gemm.operands()), "run");
        right = gemm.is_right(plan.kernel()) && right;
    }
    std::printf("tiles of %ld and %ld elements\n", areas[0], areas[1]);

    // One that wants nothing leaves nothing.
    dispatcher.set_heuristic([](const auto&, const auto&) { return std::vector<std::string>{"none of them"}; });
    const auto nothing = dispatcher.prepare(example::need(tilewise::Gemm(8, 8, 8).build(), "problem"));
    right = right && !nothing && nothing.error().code == TILEWISE_UNSUPPORTED;
    return right && areas[0] < areas[1] ? 0 : 1;
}
