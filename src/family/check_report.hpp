// SPDX-License-Identifier: MIT
// The outcome of checking (and correcting) a config as one value, for every interface that shows it: whether it is valid on its arch,
// and whether there is code for it.
#pragma once

#include <optional>
#include <vector>

#include "base/json.hpp"
#include "config/rules.hpp"

namespace tilewise {

struct CheckReport {
    KernelConfig config;
    std::vector<Rejected> violations;      // of the config as given
    std::optional<Rejected> without_code;  // why there is none for it
    std::optional<Correction> correction;  // when one was asked for

    bool ok() const { return correction ? correction->remaining.empty() : violations.empty(); }
};
CheckReport report_check(const KernelConfig& config, const ArchSpec& arch, bool fix);

Json rejected_to_json(const Rejected& rejected);
// {valid, available, name, family, violations, and with a correction: corrected, corrected_name, changes, remaining}
Json check_to_json(const CheckReport& report);

}  // namespace tilewise
