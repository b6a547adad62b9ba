// SPDX-License-Identifier: MIT
// Whether a compiler works, not only whether it is there: it compiles a kernel that does nothing, in a folder that is removed.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "build/build_settings.hpp"
#include "build/toolchain.hpp"
#include "config/arch_spec.hpp"

namespace tilewise {

// `toolchain` is what find_toolchain found for the code of the arch. Takes a fraction of a second.
Status try_compiler(const Toolchain& toolchain, const ArchSpec& arch, const BuildSettings& settings);

}  // namespace tilewise
