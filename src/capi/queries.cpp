// SPDX-License-Identifier: MIT
// The C functions that answer questions with JSON: kernels, select, check.
#include <fmt/format.h>

#include <cstdlib>

#include "base/json_object.hpp"
#include "base/version.hpp"
#include "capi/call.hpp"
#include "config/arch_catalog.hpp"
#include "config/check_report.hpp"
#include "config/config_json.hpp"
#include "device/cpu/host_cpu.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"
#include "select/select.hpp"

namespace tilewise::capi {
namespace {

// Read once: the embedded archs and the file the environment adds.
const Result<ArchCatalog>& archs() {
    static const Result<ArchCatalog> catalog = [] {
        auto embedded = ArchCatalog::embedded();
        const char* file = std::getenv("TILEWISE_ARCH_FILE");
        if (embedded && file && *file) {
            if (auto status = embedded->add_file(file); !status) return Result<ArchCatalog>(status.error());
        }
        return embedded;
    }();
    return catalog;
}

struct Query {
    KernelQuery kernels;
    bool explain = false;
};

Result<Query> read_query(const char* text) {
    if (!archs()) return archs().error();
    auto json = Json::parse(text && *text ? text : "{}");
    if (!json) return json.error();
    JsonObject from(*json, "query");
    if (!from.ok()) return from.finish().error();
    Query query;
    auto arch = from.has("arch") ? archs()->find(from.text("arch")) : host_cpu_arch(*archs());
    if (!arch) return arch.error();
    query.kernels.arch = *arch;
    const auto set = parse_enum<RuleSet>(from.text_or("rule_set", "default"));
    if (!set) return set.error();
    query.kernels.set = *set;
    if (from.has("op")) {
        const auto op = parse_enum<Op>(from.text("op"));
        if (!op) return op.error();
        query.kernels.op = *op;
    }
    if (from.has("dtype")) {
        const auto dtypes = parse_pair(from.text("dtype"));
        if (!dtypes) return dtypes.error();
        query.kernels.dtypes = *dtypes;
    }
    query.explain = from.flag_or("explain", false);
    if (auto status = from.finish(); !status) return status.error();
    return query;
}

Result<std::string> kernels(const char* query_json) {
    auto query = read_query(query_json);
    if (!query) return query.error();
    auto list = list_kernels(query->kernels);
    if (!list) return list.error();
    return kernels_to_json(*list).dump();
}

Result<std::string> select(const char* problem_text, const char* options_json) {
    if (!problem_text) return usage_error("the problem is NULL");
    auto problem = parse_problem(problem_text);
    if (!problem) return problem.error();
    auto query = read_query(options_json);
    if (!query) return query.error();
    auto list = list_kernels(query_for(*problem, *query->kernels.arch, query->kernels.set));
    if (!list) return list.error();
    Registry registry;
    registry.add(std::move(*list));
    const Selection selection = select_kernel(*problem, registry, *query->kernels.arch);
    return selection_to_json(selection, query->explain).dump();
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
