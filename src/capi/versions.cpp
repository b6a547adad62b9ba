// SPDX-License-Identifier: MIT
// The C functions that say what library this is, and whether a client fits it.
#include <fmt/core.h>

#include "base/version.hpp"
#include "capi/call.hpp"

extern "C" {

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
