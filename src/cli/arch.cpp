// SPDX-License-Identifier: MIT
// tilewise arch: the targets there are, or one of them in full.
#include <fmt/core.h>

#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "config/rule_set.hpp"

namespace tilewise::cli {
namespace {

std::string dtypes_of(const ArchSpec& arch) {
    std::string text;
    for (const DTypePair& pair : pairs_of(arch)) {
        if (pair.a == pair.b) text += (text.empty() ? "" : " ") + print_pair(pair);
    }
    return text;
}

}  // namespace

Result<int> run_arch(Context& context) {
    if (!context.arguments.operands().empty()) {
        auto arch = context.archs.find(context.arguments.operands().front());
        if (!arch) return arch.error();
        return print((*arch)->json.dump(context.json ? -1 : 2)), 0;
    }
    if (context.json) {
        Json::Array archs;
        for (const ArchSpec& arch : context.archs.archs()) archs.push_back(arch.json);
        return print(Json::object({{"count", archs.size()}, {"archs", Json(archs)}}).dump()), 0;
    }
    Table table({"arch", "backend", "family", "units", "shared KiB", "dtypes", "description"});
    for (const ArchSpec& arch : context.archs.archs()) {
        constexpr std::int64_t kKiB = 1024;
        table.add({arch.name, std::string(name_of(arch.backend)), arch.family, fmt::format("{}", arch.units),
                   fmt::format("{}", arch.shared_bytes / kKiB), dtypes_of(arch), arch.description});
    }
    print(table.text());
    return 0;
}

}  // namespace tilewise::cli
