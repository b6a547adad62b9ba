// SPDX-License-Identifier: MIT
#include "config/rules.hpp"

#include <array>

#include "config/rule_groups.hpp"

namespace tilewise {
namespace {

std::vector<ConfigRule> all_rules() {
    std::vector<ConfigRule> rules;
    // Later groups compute with what earlier ones have bounded: shapes are positive before they divide.
    for (const auto& group :
         {identity_rules(), shape_rules(), pipeline_rules(), memory_rules(), option_rules(), known_bad_rules()}) {
        rules.insert(rules.end(), group.begin(), group.end());
    }
    return rules;
}

bool is_broken(const ConfigRule& rule, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (rule.known_bad && !arch.is_known_bad(rule.name)) return false;
    return rule.broken(c, arch, out);
}

std::string printed(const ConfigField& field, const KernelConfig& c) {
    std::string text;
    field.print(c, text);
    return text;
}

}  // namespace

std::span<const ConfigRule> config_rules() {
    static const std::vector<ConfigRule> rules = all_rules();
    return rules;
}

const ConfigRule* find_config_rule(std::string_view name) {
    for (const ConfigRule& rule : config_rules()) {
        if (rule.name == name) return &rule;
    }
    return nullptr;
}

bool is_valid(const KernelConfig& config, const ArchSpec& arch) {
    for (const ConfigRule& rule : config_rules()) {
        if (is_broken(rule, config, arch, nullptr)) return false;
    }
    return true;
}

std::vector<Rejected> check_config(const KernelConfig& config, const ArchSpec& arch) {
    std::vector<Rejected> violations;
    for (const ConfigRule& rule : config_rules()) {
        Rejected rejected;
        rejected.rule = rule.name;
        if (is_broken(rule, config, arch, &rejected)) violations.push_back(std::move(rejected));
    }
    return violations;
}

void record_changes(const KernelConfig& before, const KernelConfig& after, std::string_view rule,
                    std::vector<Change>& changes) {
    for (const ConfigField& field : config_fields()) {
        const std::string from = printed(field, before), to = printed(field, after);
        if (from != to) changes.push_back({std::string(field.name), from, to, std::string(rule)});
    }
}

Correction correct_config(const KernelConfig& config, const ArchSpec& arch) {
    Correction result;
    result.config = config;
    // A correction may break an earlier rule, so the rules are gone through until nothing changes any more; two that undo
    // each other end in a refusal.
    constexpr int kPasses = 8;
    bool changed = true;
    for (int pass = 0; changed && pass < kPasses; ++pass) {
        changed = false;
        for (const ConfigRule& rule : config_rules()) {
            if (!rule.correct || !is_broken(rule, result.config, arch, nullptr)) continue;
            const KernelConfig before = result.config;
            rule.correct(result.config, arch);
            record_changes(before, result.config, rule.name, result.changes);
            changed = changed || before != result.config;
        }
    }
    result.remaining = check_config(result.config, arch);
    return result;
}

}  // namespace tilewise
