// SPDX-License-Identifier: MIT
// The whole way of one matrix product: problem, plan, executable, run; and a config that is changed and corrected.
#include "gemm_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(
        argc, argv, "One matrix product, step by step.",
        {{"m", "200", "rows"}, {"n", "120", "columns"}, {"k", "96", "depth"}, {"dtype", "fp32", "fp32 or bf16"}});
    example::need(tilewise::check_abi(), "library");
    const auto device = example::need(args.open_device(), "device");
    const tilewise::Dispatcher dispatcher(device);
    const example::GemmCase gemm(device, args.number("m"), args.number("n"), args.number("k"), args.text("dtype"));

    const auto plan = example::need(dispatcher.select(gemm.problem), "select");
    std::printf("%s\nkernel:  %s\nchosen:  by %s, %s\n", gemm.problem.text().c_str(), plan.kernel().c_str(),
                plan.source().c_str(), plan.why().c_str());
    std::printf("others:  %zu may run it, %zu may not\n", plan.candidates().size(), plan.rejections().size());

    const auto executable = example::need(plan.prepare(), "prepare");
    example::need(executable.run(gemm.operands()), "run");
    example::need(device.synchronize(), "wait");
    bool right = gemm.is_right("the chosen kernel");

    // A micro-kernel that does not exist, and what the library makes of it.
    const auto config = example::need(tilewise::KernelConfig::parse(plan.kernel()), "config");
    const auto odd = example::need(config.with("warp_tile", "5x5x1"), "changed config");
    const auto corrected = example::need(odd.corrected(), "correction");
    std::printf("warp tile 5x5x1 is not valid; corrected: %s\n", corrected.name().c_str());
    if (odd.is_valid() || !corrected.is_valid()) right = false;
    const auto by_name = example::need(dispatcher.prepare(gemm.problem, corrected), "corrected kernel");
    example::need(by_name.run(gemm.operands()), "run");
    example::need(device.synchronize(), "wait");
    return gemm.is_right("the corrected kernel") && right ? 0 : 1;
}
