// SPDX-License-Identifier: MIT
// A registry as JSON: written to a file, read back, and used.
#include <fstream>
#include <sstream>

#include "gemm_case.hpp"

int main(int argc, char** argv) {
    const example::Arguments args(argc, argv, "Write the kernels of a rule set to a file and read them back.",
                                  {{"output", "registry.json", "the file"},
                                   {"rule-set", "default", "the rule set"},
                                   {"list", "", "print the names", true}});
    const auto device = example::need(args.open_device(), "device");
    auto registry = example::need(tilewise::Registry::create("example"), "registry");
    tilewise::KernelQuery query;
    query.arch = device.arch(), query.op = "gemm", query.dtype = "fp32", query.rule_set = args.text("rule-set");
    example::need(registry.add(query), "add");
    std::ofstream(args.text("output")) << example::need(registry.export_json(), "export") << '\n';
    std::printf("%lld kernels written to %s\n", static_cast<long long>(registry.size()), args.text("output").c_str());
    if (args.has("list")) {
        for (const std::string& name : registry.names()) std::printf("  %s\n", name.c_str());
    }

    std::ostringstream text;
    text << std::ifstream(args.text("output")).rdbuf();
    auto again = example::need(tilewise::Registry::create("read back"), "registry");
    example::need(again.import_json(text.str()), "import");
    const bool same = registry.size() > 0 && again.names() == registry.names();
    std::printf("read back: %s\n", same ? "the same kernels" : "OTHER KERNELS");

    const tilewise::Dispatcher dispatcher(device, again);
    const example::GemmCase gemm(device, 70, 50, 30);
    example::need(dispatcher.run(gemm.problem, gemm.operands()), "run");
    return gemm.is_right("a kernel that was read back") && same ? 0 : 1;
}
