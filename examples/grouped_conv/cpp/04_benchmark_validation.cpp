// SPDX-License-Identifier: MIT
// Times a convolution, as the library does it and by hand, and checks the result against a reference of its own.
#include <algorithm>
#include <chrono>

#include "conv_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "Time and check one convolution.",
                                  {{"n", "1", "images"},
                                   {"g", "1", "groups"},
                                   {"c", "32", "input channels"},
                                   {"k", "32", "output channels"},
                                   {"size", "28", "height and width"},
                                   {"warmup", "3", "runs before the timed ones"},
                                   {"repeat", "10", "timed runs"},
                                   {"dtype", "fp32", "fp32 or bf16"},
                                   {"no-verify", "", "do not check", true},
                                   example::kDirection});
    const auto device = example::need(args.open_device(), "device");
    example::ConvShape shape;
    shape.n = args.number("n"), shape.g = args.number("g"), shape.c = args.number("c"), shape.k = args.number("k");
    shape.in = {1, args.number("size"), args.number("size")}, shape.filter = {1, 3, 3}, shape.pad = {0, 1, 1};
    const example::ConvCase conv(device, shape, example::direction_of(args), args.text("dtype"));
    const tilewise::Dispatcher dispatcher(device);
    const auto executable = example::need(dispatcher.prepare(conv.problem), "prepare");
    const auto workspace = example::need(
        tilewise::Buffer::make(device, static_cast<std::size_t>(executable.workspace_bytes())), "workspace");
    tilewise::Operands operands = conv.operands();
    operands.workspace = workspace.data();
    std::vector<double> us;
    const long warmup = args.number("warmup");
    for (long i = 0; i < warmup + std::max(args.number("repeat"), 1L); ++i) {
        const auto begin = std::chrono::steady_clock::now();
        example::need(executable.run(operands), "run");
        example::need(device.synchronize(), "wait");
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        if (i >= warmup) us.push_back(took.count());
    }
    std::sort(us.begin(), us.end());
    const double median = us[us.size() / 2];
    std::printf("%s\n%s\nby hand: min %.1f us, median %.1f us, max %.1f us, %.4f TFLOPS\n", conv.problem.text().c_str(),
                executable.kernel().c_str(), us.front(), median, us.back(), conv.problem.flops() / median / 1e6);
    const std::string json = example::need(dispatcher.bench(conv.problem), "bench");
    std::printf("by the library: %s\n", json.c_str());
    return args.has("no-verify") || conv.is_right("the result") ? 0 : 1;
}
