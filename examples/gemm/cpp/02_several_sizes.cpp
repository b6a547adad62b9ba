// SPDX-License-Identifier: MIT
// Many sizes, odd ones among them, each with the kernel that suits it.
#include <set>

#include "gemm_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(
        argc, argv, "Matrix products of several sizes.",
        {{"max-size", "256", "the largest size that is run"}, {"dtype", "fp32", "fp32 or bf16"}});
    const auto device = example::need(args.open_device(), "device");
    const tilewise::Dispatcher dispatcher(device);
    const long sizes[][3] = {{1, 1, 1},     {7, 5, 3},      {64, 64, 64},    {1, 256, 128},  {100, 1, 33},
                             {128, 96, 40}, {255, 129, 65}, {256, 256, 256}, {512, 512, 512}};
    bool right = true;
    std::set<std::string> kernels;
    for (const auto& [m, n, k] : sizes) {
        if (std::max({m, n, k}) > args.number("max-size")) continue;
        const example::GemmCase gemm(device, m, n, k, args.text("dtype"), static_cast<unsigned>(m * n + k));
        example::need(dispatcher.run(gemm.problem, gemm.operands()), "run");
        kernels.insert(example::need(dispatcher.select(gemm.problem), "select").kernel());
        right = gemm.is_right(gemm.problem.text()) && right;
    }
    std::printf("%zu different kernels were chosen\n", kernels.size());
    return right ? 0 : 1;
}
