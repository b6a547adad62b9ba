// SPDX-License-Identifier: MIT
// tilewise kernels: the configs of a rule set for a target.
#include <fmt/format.h>

#include <fstream>

#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "config/config_json.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise::cli {
namespace {

Result<KernelQuery> read_query(const Context& context) {
    KernelQuery query;
    auto arch = chosen_arch(context);
    if (!arch) return arch.error();
    query.arch = *arch;
    if (const auto text = context.arguments.value("rule-set")) {
        auto set = parse_enum<RuleSet>(*text);
        if (!set) return set.error();
        query.set = *set;
    }
    if (const auto text = context.arguments.value("op")) {
        auto op = parse_enum<Op>(*text);
        if (!op) return op.error();
        query.op = *op;
    }
    if (const auto text = context.arguments.value("dtype")) {
        auto dtypes = parse_pair(*text);
        if (!dtypes) return dtypes.error();
        query.dtypes = *dtypes;
    }
    return query;
}

Result<int> export_registry(const std::vector<Kernel>& kernels, const std::string& path) {
    Registry registry("export");
    registry.add(kernels);
    std::ofstream file(path, std::ios::binary);
    file << registry.to_json().dump(2) << '\n';
    file.close();
    if (!file) return usage_error(fmt::format("cannot write '{}'", path));
    print(fmt::format("{} kernels written to {}", registry.size(), path));
    return 0;
}

std::string fields_table() {
    Table table({"field", "type", "mark", "tag", "help"});
    for (const ConfigField& field : config_fields()) {
        table.add({std::string(field.name), std::string(field.type), field.mark == Mark::code ? "code" : "launch",
                   std::string(field.tag), std::string(field.help)});
    }
    return table.text();
}

}  // namespace

Result<int> run_kernels(Context& context) {
    const Arguments& arguments = context.arguments;
    if (arguments.has("schema")) return print(config_schema().dump(2)), 0;
    if (arguments.has("fields")) return print(fields_table()), 0;
    if (arguments.has("manifest")) {
        auto manifest = rule_set_manifest(context.archs);
        if (!manifest) return manifest.error();
        manifest->pop_back();
        return print(*manifest), 0;
    }
    auto query = read_query(context);
    if (!query) return query.error();
    auto kernels = list_kernels(*query);
    if (!kernels) return kernels.error();
    if (const auto path = arguments.value("export")) return export_registry(*kernels, *path);
    if (context.json) return print(kernels_to_json(*kernels).dump()), 0;
    if (arguments.has("count")) return print(fmt::format("{}", kernels->size())), 0;
    Table table({"id", "available", "name"});
    for (const Kernel& kernel : *kernels) table.add({kernel.id, kernel.available ? "yes" : "no", kernel.name});
    print(table.text());
    print(paint(fmt::format("{} kernels in {} for {}", kernels->size(), name_of(query->set), query->arch->name),
                Colour::dim));
    return 0;
}

}  // namespace tilewise::cli
