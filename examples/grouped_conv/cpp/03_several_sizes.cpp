// SPDX-License-Identifier: MIT
// Shapes as image networks have them, small enough for seconds: each with the kernel that suits it.
#include <set>

#include "conv_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(
        argc, argv, "Convolutions of several sizes.",
        {{"channels", "24", "of each"}, {"dtype", "fp32", "fp32 or bf16"}, example::kDirection});
    const auto device = example::need(args.open_device(), "device");
    const tilewise::Dispatcher dispatcher(device);
    const long channels = args.number("channels");
    const long shapes[][3] = {{14, 1, 1}, {14, 3, 1}, {7, 3, 1},
                              {15, 3, 2}, {9, 5, 1},  {16, 1, 2}};  // size, filter, stride
    bool right = true;
    std::set<std::string> kernels;
    for (const auto& [size, filter, stride] : shapes) {
        example::ConvShape shape;
        shape.c = shape.k = channels;
        shape.in = {1, size, size}, shape.filter = {1, filter, filter}, shape.stride = {1, stride, stride};
        shape.pad = {0, filter / 2, filter / 2};
        const example::ConvCase conv(device, shape, example::direction_of(args), args.text("dtype"));
        example::need(dispatcher.run(conv.problem, conv.operands()), "run");
        kernels.insert(example::need(dispatcher.select(conv.problem), "select").kernel());
        right = conv.is_right(conv.problem.text()) && right;
    }
    std::printf("%zu different kernels were chosen\n", kernels.size());
    return right ? 0 : 1;
}
