// SPDX-License-Identifier: MIT
// Forward, backward data and backward weight, in one, two and three dimensions' worth of shapes, grouped and depthwise.
#include "conv_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "A convolution and its two gradients.",
                                  {{"dtype", "fp32", "fp32 or bf16"}});
    const auto device = example::need(args.open_device(), "device");
    const tilewise::Dispatcher dispatcher(device);
    example::ConvShape grouped, depthwise, volume;
    grouped.n = 2, grouped.g = 2, grouped.c = 16, grouped.k = 24;
    grouped.in = {1, 9, 8}, grouped.filter = {1, 3, 3}, grouped.stride = {1, 2, 1}, grouped.pad = {0, 1, 1};
    depthwise.g = depthwise.c = depthwise.k = 12;
    depthwise.in = {1, 7, 7}, depthwise.filter = {1, 3, 3}, depthwise.pad = {0, 1, 1};
    volume.g = 2, volume.c = 8, volume.k = 8, volume.is_3d = true;
    volume.in = {4, 5, 6}, volume.filter = {2, 3, 3}, volume.pad = {0, 1, 1};
    bool right = true;
    for (const example::ConvShape& shape : {grouped, depthwise, volume}) {
        for (const tilewise::Direction direction : example::kDirections) {
            const example::ConvCase conv(device, shape, direction, args.text("dtype"));
            example::need(dispatcher.run(conv.problem, conv.operands()), "run");
            right = conv.is_right(conv.problem.text()) && right;
        }
    }
    return right ? 0 : 1;
}
