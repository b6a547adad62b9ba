// SPDX-License-Identifier: MIT
// Times a product, as the library does it and by hand, and checks the result against a reference of its own.
#include <algorithm>
#include <chrono>

#include "gemm_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "Time and check one matrix product.",
                                  {{"size", "320", "rows, columns and depth"},
                                   {"dtype", "fp32", "fp32 or bf16"},
                                   {"warmup", "3", "runs before the timed ones"},
                                   {"iterations", "10", "timed runs"},
                                   {"all", "", "let the library time every kernel that may run it", true}});
    const auto device = example::need(args.open_device(), "device");
    const tilewise::Dispatcher dispatcher(device);
    const long size = args.number("size");
    const example::GemmCase gemm(device, size, size, size, args.text("dtype"));
    const auto executable = example::need(dispatcher.prepare(gemm.problem), "prepare");
    const auto workspace = example::need(
        tilewise::Buffer::make(device, static_cast<std::size_t>(executable.workspace_bytes())), "workspace");
    tilewise::Operands operands = gemm.operands();
    operands.workspace = workspace.data();

    std::vector<double> us;
    const long warmup = args.number("warmup");
    for (long i = 0; i < warmup + std::max(args.number("iterations"), 1L); ++i) {
        const auto begin = std::chrono::steady_clock::now();
        example::need(executable.run(operands), "run");
        example::need(device.synchronize(), "wait");
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        if (i >= warmup) us.push_back(took.count());
    }
    std::sort(us.begin(), us.end());
    const double median = us[us.size() / 2];
    std::printf("%s\n%s\nby hand: min %.1f us, median %.1f us, max %.1f us, %.3f TFLOPS\n", gemm.problem.text().c_str(),
                executable.kernel().c_str(), us.front(), median, us.back(), gemm.problem.flops() / median / 1e6);
    const std::string json = example::need(dispatcher.bench(gemm.problem, args.has("all")), "bench");
    std::printf("by the library: %s\n", json.c_str());
    return gemm.is_right("the result") ? 0 : 1;
}
