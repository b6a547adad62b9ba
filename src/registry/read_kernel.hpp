// SPDX-License-Identifier: MIT
// A kernel as users refer to it: by its name, by its id, or by its config in JSON.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

bool is_kernel_id(std::string_view word);

// Ids are looked for among the kernels of the rule set full of every arch, which has those that listings show.
Result<KernelConfig> read_kernel(std::string_view text, const ArchCatalog& archs);

}  // namespace tilewise
