// SPDX-License-Identifier: MIT
// A config as JSON: the leading fields and every other field that is not at its default, under the names of the
// field table. Unknown keys, missing leading fields and bad values are errors that name the line.
#pragma once

#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

Json config_to_json(const KernelConfig& config);
Result<KernelConfig> config_from_json(const Json& json);

// A kernel name, or the JSON text of a config: what users may give wherever a config is asked for.
Result<KernelConfig> read_config(std::string_view name_or_json);

Json config_schema();  // JSON Schema (2020-12) of the above

}  // namespace tilewise
