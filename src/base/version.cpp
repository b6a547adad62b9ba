// SPDX-License-Identifier: MIT
#include "base/version.hpp"

namespace tilewise {

__attribute__((weak)) std::string_view version() { return TILEWISE_VERSION; }

}  // namespace tilewise
