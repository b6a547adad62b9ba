// SPDX-License-Identifier: MIT
// The C functions on kernels that need no device: list, find, select, and what a config is.
#include <fmt/core.h>

#include <optional>

#include "capi/archs.hpp"
#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "capi/models.hpp"
#include "capi/query.hpp"
#include "config/config_json.hpp"
#include "config/config_name.hpp"
#include "device/cpu/thread_pool.hpp"
#include "family/check_report.hpp"
#include "family/family.hpp"
#include "registry/read_kernel.hpp"
#include "select/select.hpp"

namespace tilewise::capi {

Result<KernelConfig> read_config_argument(const char* text) {
    if (!text) return usage_error("the config is NULL");
    if (!archs()) return archs().error();
    return read_kernel(text, *archs());
}

namespace {

Result<std::string> kernels(const char* query_json) {
    auto query = read_query(query_json, true);
    if (!query) return query.error();
    auto found = list(*query);
    if (!found) return found.error();
    return kernels_to_json(*found).dump();
}

Result<std::string> find_kernel(const char* text, const char* query_json) {
    if (!text) return usage_error("the kernel is NULL");
    const auto query = read_query(query_json, true);
    if (!query) return query.error();
    if (is_kernel_id(text)) {  // a rule set is expanded for an id alone: that takes milliseconds
        const auto found = list(*query);
        if (!found) return found.error();
        for (const Kernel& kernel : *found) {
            if (kernel.id == text) return kernel_to_json(kernel).dump();
        }
    }
    const auto config = read_config_argument(text);
    if (!config) return config.error();
    const auto arch = read_arch(config->arch.c_str());
    return kernel_to_json(make_kernel(*config, Priority::normal, arch && has_code(*config, **arch))).dump();
}

Result<std::string> select(const char* problem_text, const char* options_json) {
    const auto problem = read_problem_argument(problem_text);
    if (!problem) return problem.error();
    ChoiceQuery choice;
    auto query = read_query(options_json, false, &choice);
    if (!query) return query.error();
    std::optional<ModelStore> named;
    if (!choice.model_dir.empty()) {
        named.emplace(ModelStore::usual_folders());
        if (auto status = named->add_folder(choice.model_dir, *query->arch); !status) return status.error();
    }
    auto list = list_kernels(query_for(*problem, *query->arch, query->set));
    if (!list) return list.error();
    Registry registry;
    registry.add(std::move(*list));
    const auto threads = choice.threads ? Result<int>(choice.threads) : default_threads();
    if (!threads) return threads.error();
    SelectOptions options;
    options.strategy = choice.strategy;
    const auto selection =
        select_by(options, named ? *named : usual_models(), *problem, registry, *query->arch, *threads);
    if (!selection) return selection.error();
    return selection_to_json(*selection).dump();
}

Result<CheckReport> report(const char* text, bool fix) {
    const auto config = read_config_argument(text);
    if (!config) return config.error();
    const auto arch = read_arch(config->arch.c_str());
    if (!arch) return arch.error();
    return report_check(*config, **arch, fix);
}

Result<std::string> check(const char* text, bool fix) {
    const auto checked = report(text, fix);
    if (!checked) return checked.error();
    return check_to_json(*checked).dump();
}

Result<std::string> correct(const char* text) {
    const auto checked = report(text, true);
    if (!checked) return checked.error();
    const Correction& correction = *checked->correction;
    if (correction.remaining.empty()) return kernel_name(correction.config);
    const Rejected& first = correction.remaining.front();
    return Error{ErrorCode::check_failed, fmt::format("no correction makes the config valid: rule {}: have {}; need {}",
                                                      first.rule, first.have, first.need)};
}

Result<std::string> arch_list(const char* name) {
    if (!archs()) return archs().error();
    Json::Array items;
    if (name) {
        const auto arch = archs()->find(name);
        if (!arch) return arch.error();
        items.push_back((*arch)->json);
    } else {
        for (const ArchSpec& arch : archs()->archs()) items.push_back(arch.json);
    }
    return Json::object({{"count", items.size()}, {"archs", Json(std::move(items))}}).dump();
}

Result<const ConfigField*> find_config_field(const char* name) {
    if (!name) return usage_error("the name of the field is NULL");
    if (const ConfigField* field = find_field(name)) return field;
    return usage_error(fmt::format("no config field is called '{}'; tilewise_config_fields lists them", name));
}

Result<std::string> get_field(const char* text, const char* name) {
    const auto config = read_config_argument(text);
    if (!config) return config.error();
    const auto field = find_config_field(name);
    if (!field) return field.error();
    std::string value;
    (*field)->print(*config, value);
    return value;
}

Result<std::string> set_field(const char* text, const char* name, const char* value) {
    auto config = read_config_argument(text);
    if (!config) return config.error();
    const auto field = find_config_field(name);
    if (!field) return field.error();
    if (!value) return usage_error("the value is NULL");
    if (auto status = (*field)->parse(*config, value); !status) return status.error();
    return kernel_name(*config);
}

std::string fields() {
    Json::Array items;
    for (const ConfigField& field : config_fields()) {
        const std::string_view mark = field.mark == Mark::code ? "code" : "launch";
        items.push_back(Json::object(
            {{"field", field.name}, {"type", field.type}, {"mark", mark}, {"tag", field.tag}, {"help", field.help}}));
    }
    return Json::object({{"fields", Json(std::move(items))}}).dump();
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_archs(const char* arch, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::arch_list(arch); });
}

tilewise_status tilewise_kernels(const char* query_json, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::kernels(query_json); });
}

tilewise_status tilewise_find_kernel(const char* kernel, const char* query_json, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::find_kernel(kernel, query_json); });
}

tilewise_status tilewise_select(const char* problem, const char* options_json, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::select(problem, options_json); });
}

tilewise_status tilewise_check(const char* config, int fix, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::check(config, fix != 0); });
}

tilewise_status tilewise_correct(const char* config, char** name) {
    return tilewise::capi::give_text(name, [&] { return tilewise::capi::correct(config); });
}

tilewise_status tilewise_config_get(const char* config, const char* field, char** value) {
    return tilewise::capi::give_text(value, [&] { return tilewise::capi::get_field(config, field); });
}

tilewise_status tilewise_config_set(const char* config, const char* field, const char* value, char** name) {
    return tilewise::capi::give_text(name, [&] { return tilewise::capi::set_field(config, field, value); });
}

tilewise_status tilewise_config_fields(char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::fields(); });
}

}  // extern "C"
