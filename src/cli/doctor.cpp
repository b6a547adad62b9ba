// SPDX-License-Identifier: MIT
// tilewise doctor: what this machine has, whether this build is whole, and whether what it needs works: the cache is written
// to, a stub compiled, every embedded rule set expanded and checked.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/doctor_checks.hpp"
#include "cli/terminal.hpp"

namespace tilewise::cli {
namespace {

std::vector<Finding> examine(const Context& context) {
    std::vector<Finding> all = {{"version", std::string(version())}};
    const auto add = [&](std::vector<Finding> more) { std::move(more.begin(), more.end(), std::back_inserter(all)); };
    add(check_host(context.archs));
    add(check_archs(context.archs));
    auto settings = build_settings();
    if (settings) {
        const std::vector<std::string> packs = context.arguments.values("pack");
        settings->packs.insert(settings->packs.end(), packs.begin(), packs.end());
        add(check_storage(*settings));
        add(check_kernels(*settings));
        add(check_compilers(*settings, context.archs));
    } else {
        all.push_back({"settings", settings.error().message, Level::fail});
    }
    add(check_models(context.arguments.values("model-dir")));
    add(check_gpus());
    add(check_variables(context.arguments.has("all")));
    return all;
}

// A compiler's log would break the table.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string painted(Level level) {
    constexpr Colour kColours[] = {Colour::plain, Colour::yellow, Colour::red};
    return paint(name_of(level), kColours[static_cast<std::size_t>(level)]);
}

}  // namespace

Result<int> run_doctor(Context& context) {
    const std::vector<Finding> findings = examine(context);
    const auto count = [&](Level level) {
        return std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.level == level; });
    };
    const bool ok = count(Level::fail) == 0;
    Json::Array items;
    Table table({"", "check", "found"});
    for (const Finding& finding : findings) {
        items.push_back(Json::object({{"check", finding.what},
                                      {"found", finding.found},
                                      {"level", name_of(finding.level)},
                                      {"ok", finding.level != Level::fail}}));
        table.add({painted(finding.level), finding.what, first_line(finding.found)});
    }
    if (context.json) {
        print(Json::object({{"ok", ok}, {"checks", Json(std::move(items))}}).dump());
    } else {
        print(table.text());
        print(fmt::format("\n{} of {} checks are ok, {} warn, {} FAIL", count(Level::ok), findings.size(),
                          count(Level::warn), count(Level::fail)));
    }
    return ok ? 0 : static_cast<int>(ErrorCode::check_failed);
}

}  // namespace tilewise::cli
