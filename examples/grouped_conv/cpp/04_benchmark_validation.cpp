// SPDX-License-Identifier: MIT
// Times a convolution, as the library does it and by hand, and checks the result against a reference of its own.
#include "conv_case.hpp"
#include "timing.hpp"

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
    example::time_by_hand(device, dispatcher, conv, args.number("warmup"), args.number("repeat"));
    const std::string json = example::need(dispatcher.bench(conv.problem), "bench");
    std::printf("by the library: %s\n", json.c_str());
    return args.has("no-verify") || conv.is_right("the result") ? 0 : 1;
}
