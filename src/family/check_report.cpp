// SPDX-License-Identifier: MIT
#include "family/check_report.hpp"

#include "config/config_json.hpp"
#include "config/config_name.hpp"
#include "family/corrector.hpp"
#include "family/family.hpp"

namespace tilewise {

CheckReport report_check(const KernelConfig& config, const ArchSpec& arch, bool fix) {
    CheckReport report{config, check_config(config, arch), std::nullopt, std::nullopt};
    Rejected why;
    if (!has_code(config, arch, &why)) report.without_code = std::move(why);
    if (fix) report.correction = Corrector(arch).correct(config);
    return report;
}

Json rejected_to_json(const Rejected& rejected) {
    return Json::object({{"rule", rejected.rule}, {"have", rejected.have}, {"need", rejected.need}});
}

namespace {

Json list_to_json(const std::vector<Rejected>& list) {
    Json::Array items;
    for (const Rejected& rejected : list) items.push_back(rejected_to_json(rejected));
    return Json(std::move(items));
}

}  // namespace

Json check_to_json(const CheckReport& report) {
    const bool valid = report.violations.empty();
    Json json = Json::object({{"valid", valid},
                              {"available", valid && !report.without_code},
                              {"name", kernel_name(report.config)},
                              {"family", name_of(family_of(report.config))},
                              {"violations", list_to_json(report.violations)}});
    if (report.without_code) json.set("without_code", rejected_to_json(*report.without_code));
    if (!report.correction) return json;
    Json::Array changes;
    for (const Change& change : report.correction->changes) {
        changes.push_back(
            Json::object({{"field", change.field}, {"from", change.from}, {"to", change.to}, {"rule", change.rule}}));
    }
    json.set("corrected", config_to_json(report.correction->config));
    json.set("corrected_name", kernel_name(report.correction->config));
    json.set("changes", Json(std::move(changes)));
    json.set("remaining", list_to_json(report.correction->remaining));
    return json;
}

}  // namespace tilewise
