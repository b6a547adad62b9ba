// SPDX-License-Identifier: MIT
// fmt, compiled once. Every other file includes fmt/core.h, which declares what it needs, and compiles several times as
// quickly; this one has the definition they all end up in, so that the library needs no libfmt at run time.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

namespace tilewise {

// Nobody calls it; taking the address makes the compiler emit the function.
__attribute__((used)) std::string (*const emitted_vformat)(fmt::string_view, fmt::format_args) = &fmt::vformat;

}  // namespace tilewise
