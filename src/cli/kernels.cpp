// SPDX-License-Identifier: MIT
// tilewise kernels: the configs of a rule set for a target.
#include <fmt/core.h>

#include <map>

#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/kernel_query.hpp"
#include "cli/terminal.hpp"
#include "config/config_json.hpp"
#include "family/family.hpp"

namespace tilewise::cli {
namespace {

Result<int> export_registry(const std::vector<Kernel>& kernels, const std::string& path, bool json) {
    Registry registry("export");
    registry.add(kernels);
    constexpr mode_t kReadByAll = 0644;
    if (auto status = write_file(path, registry.to_json().dump(2) + "\n", kReadByAll); !status) return status.error();
    print(json ? Json::object({{"count", registry.size()}, {"file", path}}).dump()
               : fmt::format("{} kernels written to {}", registry.size(), path));
    return 0;
}

void print_fields(bool json) {
    Table table({"field", "type", "mark", "tag", "help"});
    Json::Array items;
    for (const ConfigField& field : config_fields()) {
        const std::string_view mark = field.mark == Mark::code ? "code" : "launch";
        table.add({std::string(field.name), std::string(field.type), std::string(mark), std::string(field.tag),
                   std::string(field.help)});
        items.push_back(Json::object(
            {{"field", field.name}, {"type", field.type}, {"mark", mark}, {"tag", field.tag}, {"help", field.help}}));
    }
    print(json ? Json::object({{"fields", Json(std::move(items))}}).dump() : table.text());
}

Result<int> print_manifest(const Context& context) {
    auto manifest = rule_set_manifest(context.archs);
    if (!manifest) return manifest.error();
    manifest->pop_back();
    if (!context.json) return print(*manifest), 0;
    Json::Array items;
    for (const std::string_view line : split(*manifest, '\n')) {
        if (line.starts_with('#')) continue;
        const auto words = split(line, ' ');
        items.push_back(Json::object({{"arch", words[0]},
                                      {"op", words[1]},
                                      {"dtype", words[2]},
                                      {"set", words[3]},
                                      {"count", *parse_integer(words[4])},
                                      {"digest", words[5]}}));
    }
    return print(Json::object({{"sets", Json(std::move(items))}}).dump()), 0;
}

std::string ops_text(const Family& family) {
    std::string text;
    for (const Op op : family.ops) text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(op));
    return text;
}

// How many kernels of the rule set, on all archs of its backend or on the one that is asked for, are each family's.
Result<std::map<const Family*, std::int64_t>> count_families(const Context& context, RuleSet set) {
    const auto only = context.arguments.value("arch");
    std::map<const Family*, std::int64_t> counts;
    for (const ArchSpec& arch : context.archs.archs()) {
        if (only && *only != arch.name) continue;
        const auto kernels = list_kernels({&arch, set, std::nullopt, std::nullopt, std::nullopt});
        if (!kernels) return kernels.error();
        for (const Kernel& kernel : *kernels) {
            if (kernel.available) ++counts[find_family(kernel.config, arch)];
        }
    }
    return counts;
}

Result<int> print_families(const Context& context) {
    const auto set = parse_enum<RuleSet>(context.arguments.value("rule-set").value_or("default"));
    if (!set) return set.error();
    if (const auto name = context.arguments.value("arch")) {
        if (const auto arch = context.archs.find(*name); !arch) return arch.error();
    }
    const auto counts = count_families(context, *set);
    if (!counts) return counts.error();
    Table table({"family", "backend", "operations", "kernels", "description"});
    Json::Array items;
    for (const Family* family : families()) {
        const auto found = counts->find(family);
        const std::int64_t count = found == counts->end() ? 0 : found->second;
        table.add({std::string(family->name()), std::string(name_of(family->backend)), ops_text(*family),
                   fmt::format("{}", count), std::string(family->description)});
        Json::Array ops;
        for (const Op op : family->ops) ops.emplace_back(name_of(op));
        items.push_back(Json::object({{"name", family->name()},
                                      {"description", family->description},
                                      {"ops", Json(std::move(ops))},
                                      {"backend", name_of(family->backend)},
                                      {"kernels", count}}));
    }
    print(context.json ? Json::object({{"families", Json(std::move(items))}}).dump() : table.text());
    return 0;
}

}  // namespace

Result<int> run_kernels(Context& context) {
    const Arguments& arguments = context.arguments;
    if (arguments.has("schema")) return print(config_schema().dump(2)), 0;
    if (arguments.has("fields")) return print_fields(context.json), 0;
    if (arguments.has("manifest")) return print_manifest(context);
    if (arguments.has("families")) return print_families(context);
    auto query = read_kernel_query(context);
    if (!query) return query.error();
    auto kernels = list_kernels(*query);
    if (!kernels) return kernels.error();
    if (const auto path = arguments.value("export")) return export_registry(*kernels, *path, context.json);
    if (arguments.has("count")) {
        return print(context.json ? Json::object({{"count", kernels->size()}}).dump()
                                  : fmt::format("{}", kernels->size())),
               0;
    }
    if (context.json) return print(kernels_to_json(*kernels).dump()), 0;
    Table table({"id", "available", "family", "name"});
    for (const Kernel& kernel : *kernels) {
        table.add(
            {kernel.id, kernel.available ? "yes" : "no", std::string(name_of(family_of(kernel.config))), kernel.name});
    }
    print(table.text());
    print(paint(fmt::format("{} kernels in {} for {}", kernels->size(), name_of(query->set), query->arch->name),
                Colour::dim));
    return 0;
}

}  // namespace tilewise::cli
