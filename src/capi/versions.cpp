// SPDX-License-Identifier: MIT
// The C functions that say what library this is, and whether a client fits it.
#include <fmt/core.h>

#include "base/activity.hpp"
#include "base/version.hpp"
#include "capi/call.hpp"

namespace tilewise::capi {
namespace {

Status set_verbose(int level) {
    if (level < 0 || level > 2) {
        return usage_error(fmt::format("the level is {}; need 0 (silent), 1 or 2", level));
    }
    set_verbosity(static_cast<Verbosity>(level));
    return {};
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_set_verbose(int level) {
    return tilewise::capi::guarded([&] { return tilewise::capi::set_verbose(level); });
}

const char* tilewise_version(void) { return tilewise::version().data(); }

int tilewise_abi_version(void) { return TILEWISE_ABI_VERSION; }

tilewise_status tilewise_check_abi(int abi_version) {
    return tilewise::capi::guarded([&]() -> tilewise::Status {
        if (abi_version == TILEWISE_ABI_VERSION) return {};
        return tilewise::usage_error(fmt::format(
            "the program was compiled with a tilewise.h of ABI {}, this library ({}) has ABI {}; install the "
            "library and the header of the same release",
            abi_version, tilewise::version(), TILEWISE_ABI_VERSION));
    });
}

const char* tilewise_status_name(tilewise_status status) {
    switch (status) {
        case TILEWISE_OK: return "ok";
        case TILEWISE_CHECK_FAILED: return "check failed";
        case TILEWISE_USAGE: return "usage";
        case TILEWISE_UNSUPPORTED: return "unsupported";
        case TILEWISE_TOOLCHAIN: return "toolchain";
        case TILEWISE_DEVICE: return "device";
        case TILEWISE_INTERNAL: return "internal";
    }
    return "unknown";
}

}  // extern "C"
