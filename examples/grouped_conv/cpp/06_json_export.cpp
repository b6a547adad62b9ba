// SPDX-License-Identifier: MIT
// The convolution kernels of a rule set as JSON: written to a file, read back, and used.
#include <fstream>
#include <sstream>

#include "conv_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "Write convolution kernels to a file and read them back.",
                                  {{"output", "conv_registry.json", "the file"}, example::kDirection});
    const auto device = example::need(args.open_device(), "device");
    auto registry = example::need(tilewise::Registry::create("convolutions"), "registry");
    for (const char* op : {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"}) {
        tilewise::KernelQuery query;
        query.arch = device.arch(), query.op = op, query.dtype = "fp32";
        std::printf("%-16s %lld kernels\n", op, static_cast<long long>(example::need(registry.add(query), "add")));
    }
    std::ofstream(args.text("output")) << example::need(registry.export_json(), "export") << '\n';
    std::ostringstream text;
    text << std::ifstream(args.text("output")).rdbuf();
    auto again = example::need(tilewise::Registry::create("read back"), "registry");
    example::need(again.import_json(text.str()), "import");
    const bool same = registry.size() > 0 && again.names() == registry.names();
    std::printf("read back from %s: %s\n", args.text("output").c_str(), same ? "the same kernels" : "OTHER KERNELS");

    example::ConvShape shape;
    shape.n = 2, shape.g = 2, shape.c = 8, shape.k = 8, shape.in = {1, 8, 8}, shape.filter = {1, 3, 3};
    const example::ConvCase conv(device, shape, example::direction_of(args));
    example::need(tilewise::Dispatcher(device, again).run(conv.problem, conv.operands()), "run");
    return conv.is_right("a kernel that was read back") && same ? 0 : 1;
}
