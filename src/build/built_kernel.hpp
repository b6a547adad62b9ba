// SPDX-License-Identifier: MIT
// A kernel ready to be loaded, and how it came to be there.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/enum_names.hpp"
#include "build/manifest.hpp"

namespace tilewise {

enum class KernelOrigin {
    cache,     // found in the cache
    pack,      // taken from a pack
    builtin,   // compiled into the library
    built,     // compiled just now, and in the cache
    private_,  // compiled just now for this process alone, because the cache could not be used; the note says why
    none,      // nothing was built, since there is nothing to launch
};

template <>
struct EnumNames<KernelOrigin> {
    static constexpr std::string_view kind = "kernel origin";
    static constexpr std::array<std::string_view, 6> names = {"cache", "pack", "builtin", "built", "private", "none"};
};

struct BuiltKernel {
    std::string path;
    std::string digest;
    KernelOrigin origin = KernelOrigin::cache;
    std::string note;  // what the user should know about it; usually empty
    Manifest manifest;
};

}  // namespace tilewise
