// SPDX-License-Identifier: MIT
// The archs that the C functions know. Read once and kept until the process ends, so that devices may refer to them.
#pragma once

#include "base/result.hpp"
#include "config/arch_catalog.hpp"

namespace tilewise::capi {

// The embedded ones and those of the file the environment adds.
const Result<ArchCatalog>& archs();

}  // namespace tilewise::capi
