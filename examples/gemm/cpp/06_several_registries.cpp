// SPDX-License-Identifier: MIT
// Several registries beside each other: each dispatcher chooses from its own kernels only; merged, from both.
#include "gemm_case.hpp"

namespace {

tilewise::Registry registry_of(const tilewise::Device& device, const std::string& name, const std::string& dtype) {
    auto registry = example::need(tilewise::Registry::create(name), "registry");
    tilewise::KernelQuery query;
    query.arch = device.arch(), query.op = "gemm", query.dtype = dtype;
    example::need(registry.add(query), "add");
    std::printf("%-6s %lld kernels\n", name.c_str(), static_cast<long long>(registry.size()));
    return registry;
}

}  // namespace

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "Kernels in several registries.", {});
    const auto device = example::need(args.open_device(), "device");
    const auto fp32 = registry_of(device, "fp32", "fp32"), bf16 = registry_of(device, "bf16", "bf16");
    auto both = example::need(tilewise::Registry::create("both"), "registry");
    example::need(both.merge(fp32), "merge");
    example::need(both.merge(bf16), "merge");
    bool right = both.size() == fp32.size() + bf16.size();

    const example::GemmCase single(device, 60, 70, 80, "fp32"), half(device, 60, 70, 80, "bf16");
    for (const auto& [registry, name] : {std::pair(&fp32, "fp32"), {&bf16, "bf16"}, {&both, "both"}}) {
        const tilewise::Dispatcher dispatcher(device, *registry);
        for (const example::GemmCase* gemm : {&single, &half}) {
            const auto plan = example::need(dispatcher.select(gemm->problem), "select");
            const bool expected = registry == &both || (registry == &fp32) == (gemm == &single);
            right = right && plan.has_kernel() == expected;
            if (!plan.has_kernel()) {
                std::printf("none    %s: %s\n", name, plan.why().c_str());
                continue;
            }
            right = right && registry->has(plan.kernel());
            example::need(dispatcher.run(gemm->problem, gemm->operands()), "run");
            right = gemm->is_right(std::string(name) + " " + plan.kernel()) && right;
        }
    }
    // The kernel that the model ranks last is first in its own registry, by priority.
    auto chosen = example::need(tilewise::Registry::create("chosen"), "registry");
    example::need(chosen.merge(fp32), "merge");
    const auto ranked = example::need(tilewise::Dispatcher(device, fp32).select(single.problem), "select").candidates();
    const auto last = example::need(tilewise::KernelConfig::parse(ranked.back().kernel), "config");
    example::need(chosen.add(last, tilewise::Priority::high), "add");
    const auto plan = example::need(tilewise::Dispatcher(device, chosen).select(single.problem), "select");
    std::printf("with high priority: %s\n", plan.kernel().c_str());
    return right && plan.kernel() == last.name() ? 0 : 1;
}
