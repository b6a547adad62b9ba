// SPDX-License-Identifier: MIT
// A registry for each direction: a dispatcher finds kernels for its own direction only; merged, for all.
#include "conv_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "Convolution kernels in several registries.", {});
    const auto device = example::need(args.open_device(), "device");
    example::ConvShape shape;
    shape.g = 2, shape.c = 8, shape.k = 12, shape.in = {1, 8, 9}, shape.filter = {1, 3, 3}, shape.pad = {0, 1, 1};
    constexpr const char* kOps[] = {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"};
    auto all = example::need(tilewise::Registry::create("all"), "registry");
    bool right = true;
    for (const tilewise::Direction own : example::kDirections) {
        auto registry = example::need(tilewise::Registry::create(kOps[static_cast<int>(own)]), "registry");
        tilewise::KernelQuery query;
        query.arch = device.arch(), query.op = kOps[static_cast<int>(own)], query.dtype = "fp32";
        example::need(registry.add(query), "add");
        example::need(all.merge(registry), "merge");
        const tilewise::Dispatcher dispatcher(device, registry);
        for (const tilewise::Direction direction : example::kDirections) {
            const example::ConvCase conv(device, shape, direction);
            const auto plan = example::need(dispatcher.select(conv.problem), "select");
            right = right && plan.has_kernel() == (direction == own);
        }
    }
    const tilewise::Dispatcher dispatcher(device, all);
    for (const tilewise::Direction direction : example::kDirections) {
        const example::ConvCase conv(device, shape, direction);
        example::need(dispatcher.run(conv.problem, conv.operands()), "run");
        right = conv.is_right(conv.problem.text()) && right;
    }
    std::printf("%lld kernels in all\n", static_cast<long long>(all.size()));
    return right ? 0 : 1;
}
