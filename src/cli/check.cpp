// SPDX-License-Identifier: MIT
// tilewise check: whether a config is valid, every rule it breaks, and with --fix what would make it valid.
#include <fmt/core.h>

#include "cli/command.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "config/config_name.hpp"
#include "family/check_report.hpp"
#include "family/code_rules.hpp"
#include "family/may_run.hpp"

namespace tilewise::cli {
namespace {

std::string violations_table(const std::vector<Rejected>& violations) {
    Table table({"rule", "have", "need"});
    for (const Rejected& v : violations) table.add({v.rule, v.have, v.need});
    return table.text();
}

void print_correction(const Correction& correction) {
    if (!correction.changes.empty()) {
        Table table({"field", "from", "to", "rule"});
        for (const Change& change : correction.changes) table.add({change.field, change.from, change.to, change.rule});
        print(fmt::format("\n{}", table.text()));
    }
    if (correction.remaining.empty()) {
        print(fmt::format("\n{} {}", paint("valid as", Colour::green), kernel_name(correction.config)));
        return;
    }
    print(fmt::format("\n{}\n{}", paint("cannot be corrected:", Colour::red), violations_table(correction.remaining)));
}

Result<int> list_rules(bool json) {
    Table table({"rule", "reason"});
    Json::Array items;
    const auto add = [&](std::string_view name, std::string_view reason) {
        table.add({std::string(name), std::string(reason)});
        items.push_back(Json::object({{"rule", name}, {"reason", reason}}));
    };
    for (const ConfigRule& rule : config_rules()) add(rule.name, rule.reason);
    for (const CodeRule& rule : code_rules()) add(rule.name, rule.reason);
    for (const Family* family : families()) {
        for (const ConfigRule& rule : family->rules) add(rule.name, fmt::format("{}: {}", family->name(), rule.reason));
    }
    for (const NamedRule& rule : run_rules()) add(rule.name, rule.reason);
    print(json ? Json::object({{"rules", Json(std::move(items))}}).dump() : table.text());
    return 0;
}

}  // namespace

Result<int> run_check(Context& context) {
    if (context.arguments.has("rules")) return list_rules(context.json);
    if (context.arguments.operands().empty()) return usage_error("check needs a kernel name or a CONFIG.json");
    auto config = read_config_operand(context, context.arguments.operands().front());
    if (!config) return config.error();
    auto arch = context.archs.find(config->arch);
    if (!arch) return arch.error();
    const CheckReport report = report_check(*config, **arch, context.arguments.has("fix"));
    const int code = report.ok() ? 0 : static_cast<int>(ErrorCode::check_failed);
    if (context.json) return print(check_to_json(report).dump()), code;
    print(kernel_name(*config));
    if (!report.violations.empty()) {
        print(fmt::format("{}\n{}", paint("not valid:", Colour::red), violations_table(report.violations)));
    } else if (report.without_code) {
        print(fmt::format("{}\n{}", paint("valid, but there is no code for it:", Colour::yellow),
                          violations_table({*report.without_code})));
    } else {
        print(paint("valid", Colour::green));
    }
    const bool right = report.violations.empty() && !report.without_code;
    if (report.correction && !right) print_correction(*report.correction);
    return code;
}

}  // namespace tilewise::cli
