// SPDX-License-Identifier: MIT
#include "capi/query.hpp"

#include "base/json_object.hpp"
#include "capi/archs.hpp"
#include "device/cpu/host_cpu.hpp"
#include "family/family.hpp"

namespace tilewise::capi {

namespace {
constexpr std::int64_t kMostThreads = 1 << 16;
}

Result<const ArchSpec*> read_arch(const char* name) {
    if (!archs()) return archs().error();
    return name && *name ? archs()->find(name) : host_cpu_arch(*archs());
}

Result<Query> read_query(const char* text, bool has_kernels, ChoiceQuery* choice) {
    auto json = Json::parse(text && *text ? text : "{}");
    if (!json) return json.error();
    JsonObject from(*json, "query");
    if (!from.ok()) return from.finish().error();
    const std::string arch_name = from.text_or("arch", "");
    const std::string set_name = from.text_or("rule_set", name_of(RuleSet::standard));
    const std::string op_name = has_kernels ? from.text_or("op", "") : "";
    const std::string dtype_name = has_kernels ? from.text_or("dtype", "") : "";
    const std::string strategy_name = choice ? from.text_or("strategy", name_of(choice->strategy)) : "";
    if (choice) {
        choice->model_dir = from.text_or("model_dir", "");
        choice->threads = static_cast<int>(from.integer_or("threads", 1, kMostThreads, 0));
    }
    const bool only_available = has_kernels && from.flag_or("available", false);
    if (auto status = from.finish(); !status) return status.error();
    if (choice) {
        const auto wanted = parse_enum<Strategy>(strategy_name);
        if (!wanted) return wanted.error();
        if (*wanted == Strategy::measure) return usage_error("the strategy measure needs a context");
        choice->strategy = *wanted;
    }
    auto arch = read_arch(arch_name.c_str());
    if (!arch) return arch.error();
    Query query;
    query.only_available = only_available;
    query.arch = *arch;
    const auto set = parse_enum<RuleSet>(set_name);
    if (!set) return set.error();
    query.set = *set;
    if (!op_name.empty()) {
        const auto op = parse_enum<Op>(op_name);
        if (!op) return op.error();
        query.op = *op;
    }
    if (!dtype_name.empty()) {
        const auto dtypes = parse_pair(dtype_name);
        if (!dtypes) return dtypes.error();
        query.dtypes = *dtypes;
    }
    return query;
}

Result<std::vector<Kernel>> list(const Query& query) {
    auto kernels = list_kernels(query);
    if (kernels && query.only_available)
        std::erase_if(*kernels, [](const Kernel& kernel) { return !kernel.available; });
    return kernels;
}

}  // namespace tilewise::capi
