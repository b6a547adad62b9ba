// SPDX-License-Identifier: MIT
// The kernels that --arch, --rule-set, --op and --dtype ask for.
#pragma once

#include "base/result.hpp"
#include "cli/command.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise::cli {

Result<KernelQuery> read_kernel_query(const Context& context);
Result<KernelQuery> read_kernel_query(const Context& context, const ArchSpec& arch);  // whatever --arch says

}  // namespace tilewise::cli
