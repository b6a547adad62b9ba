// SPDX-License-Identifier: MIT
#include "cli/kernel_query.hpp"

#include <fmt/core.h>

#include "family/family.hpp"

namespace tilewise::cli {

Result<KernelQuery> read_kernel_query(const Context& context) {
    auto arch = chosen_arch(context);
    if (!arch) return arch.error();
    return read_kernel_query(context, **arch);
}

Result<KernelQuery> read_kernel_query(const Context& context, const ArchSpec& arch) {
    KernelQuery query;
    query.arch = &arch;
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
        if (!arch.find_warp_tiles(*dtypes)) {
            return unsupported_error(fmt::format("{} has no warp tiles for {}", arch.name, *text));
        }
    }
    return query;
}

}  // namespace tilewise::cli
