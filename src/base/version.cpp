// SPDX-License-Identifier: MIT
#include "base/version.hpp"

namespace tilewise {

std::string_view version() { return TILEWISE_VERSION; }

}  // namespace tilewise
