// SPDX-License-Identifier: MIT
// The rules a config obeys on an arch. Each is a named object with a reason, a test, and, where there is one, the
// correction. The test fills in the numbers only when asked for them, so a plain yes or no allocates nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

struct ConfigRule {
    std::string_view name;
    std::string_view reason;
    // Whether the config breaks the rule; `out`, unless null, gets what it has and what it needs.
    bool (*broken)(const KernelConfig&, const ArchSpec&, Rejected* out);
    // Changes the config so that it no longer breaks the rule, where that is possible; null where it never is.
    void (*correct)(KernelConfig&, const ArchSpec&) = nullptr;
    // True for combinations known to be wrong on some targets: the rule holds where the arch file names it.
    bool known_bad = false;
};

std::span<const ConfigRule> config_rules();  // in the order they are checked
const ConfigRule* find_config_rule(std::string_view name);

bool is_valid(const KernelConfig& config, const ArchSpec& arch);                       // allocates nothing
std::vector<Rejected> check_config(const KernelConfig& config, const ArchSpec& arch);  // every broken rule

struct Change {
    std::string field, from, to, rule;
};
// Appends a change for every field that differs.
void record_changes(const KernelConfig& before, const KernelConfig& after, std::string_view rule,
                    std::vector<Change>& changes);
struct Correction {
    KernelConfig config;
    std::vector<Change> changes;
    std::vector<Rejected> remaining;  // what could not be corrected; empty when the config is now valid
};
// By the rules above alone: the corrected config is valid, but may have no code (family/corrector.hpp).
Correction correct_config(const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
