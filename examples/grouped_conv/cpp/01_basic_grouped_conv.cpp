// SPDX-License-Identifier: MIT
// The whole way of one grouped convolution: problem, plan, executable, run.
#include "conv_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "One grouped convolution, step by step.",
                                  {{"n", "2", "images"},
                                   {"g", "2", "groups"},
                                   {"c", "32", "input channels"},
                                   {"k", "48", "output channels"},
                                   {"size", "14", "height and width"},
                                   {"dtype", "fp32", "fp32 or bf16"},
                                   example::kDirection});
    example::need(tilewise::check_abi(), "library");
    const auto device = example::need(args.open_device(), "device");
    example::ConvShape shape;
    shape.n = args.number("n"), shape.g = args.number("g"), shape.c = args.number("c"), shape.k = args.number("k");
    shape.in = {1, args.number("size"), args.number("size")};
    shape.filter = {1, 3, 3}, shape.pad = {0, 1, 1};
    const example::ConvCase conv(device, shape, example::direction_of(args), args.text("dtype"));

    const tilewise::Dispatcher dispatcher(device);
    const auto plan = example::need(dispatcher.select(conv.problem), "select");
    std::printf("%s\nkernel:  %s\nchosen:  by %s, %s\n", conv.problem.text().c_str(), plan.kernel().c_str(),
                plan.source().c_str(), plan.why().c_str());
    const auto executable = example::need(plan.prepare(), "prepare");
    const auto workspace = example::need(
        tilewise::Buffer::make(device, static_cast<std::size_t>(executable.workspace_bytes())), "workspace");
    tilewise::Operands operands = conv.operands();
    operands.workspace = workspace.data();
    example::need(executable.run(operands), "run");
    example::need(device.synchronize(), "wait");
    return conv.is_right("the chosen kernel") ? 0 : 1;
}
