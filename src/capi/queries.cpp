// SPDX-License-Identifier: MIT
// The C functions that answer questions with JSON: kernels, select, check.
#include "base/json_object.hpp"
#include "base/version.hpp"
#include "capi/archs.hpp"
#include "capi/call.hpp"
#include "codegen/kernel_source.hpp"
#include "config/check_report.hpp"
#include "config/config_json.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/cpu/thread_pool.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"
#include "select/select.hpp"

namespace tilewise::capi {
namespace {

// `has_kernels`: whether the query may name an operation and types, as a list of kernels does; a problem has its own.
Result<KernelQuery> read_query(const char* text, bool has_kernels) {
    if (!archs()) return archs().error();
    auto json = Json::parse(text && *text ? text : "{}");
    if (!json) return json.error();
    JsonObject from(*json, "query");
    if (!from.ok()) return from.finish().error();
    const std::string arch_name = from.text_or("arch", "");
    const std::string set_name = from.text_or("rule_set", name_of(RuleSet::standard));
    const std::string op_name = has_kernels ? from.text_or("op", "") : "";
    const std::string dtype_name = has_kernels ? from.text_or("dtype", "") : "";
    if (auto status = from.finish(); !status) return status.error();
    auto arch = arch_name.empty() ? host_cpu_arch(*archs()) : archs()->find(arch_name);
    if (!arch) return arch.error();
    KernelQuery query;
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
    query.available = has_template;
    return query;
}

Result<std::string> kernels(const char* query_json) {
    auto query = read_query(query_json, true);
    if (!query) return query.error();
    auto list = list_kernels(*query);
    if (!list) return list.error();
    return kernels_to_json(*list).dump();
}

Result<std::string> select(const char* problem_text, const char* options_json) {
    if (!problem_text) return usage_error("the problem is NULL");
    auto problem = read_problem(problem_text);
    if (!problem) return problem.error();
    auto query = read_query(options_json, false);
    if (!query) return query.error();
    auto list = list_kernels(query_for(*problem, *query->arch, query->set, has_template));
    if (!list) return list.error();
    Registry registry;
    registry.add(std::move(*list));
    return selection_to_json(select_kernel(*problem, registry, *query->arch, usable_cpus())).dump();
}

Result<std::string> check(const char* text, bool fix) {
    if (!text) return usage_error("the config is NULL");
    auto config = read_config(text);
    if (!config) return config.error();
    if (!archs()) return archs().error();
    auto arch = archs()->find(config->arch);
    if (!arch) return arch.error();
    return check_to_json(report_check(*config, **arch, fix)).dump();
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

const char* tilewise_version(void) { return tilewise::version().data(); }

int tilewise_abi_version(void) { return TILEWISE_ABI_VERSION; }

tilewise_status tilewise_kernels(const char* query_json, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::kernels(query_json); });
}

tilewise_status tilewise_select(const char* problem, const char* options_json, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::select(problem, options_json); });
}

tilewise_status tilewise_check(const char* config, int fix, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::check(config, fix != 0); });
}

}  // extern "C"
