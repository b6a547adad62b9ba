// SPDX-License-Identifier: MIT
#include "capi/call.hpp"

#include <cstdlib>
#include <new>

namespace tilewise::capi {

std::string& last_error() {
    thread_local std::string message;
    return message;
}

tilewise_status fail(const Error& error) noexcept {
    try {
        last_error() = error.message;
    } catch (...) {
        // Not even the message fits; the status still says what kind of failure it was.
    }
    return static_cast<tilewise_status>(error.code);
}

tilewise_status fail_with(const char* what) noexcept {
    try {
        last_error() = what;
    } catch (...) {
        // As above.
    }
    return TILEWISE_INTERNAL;
}

Status give(char** out, const Result<std::string>& text) {
    if (!text) return text.error();
    char* copy = static_cast<char*>(std::malloc(text->size() + 1));
    if (!copy) throw std::bad_alloc();
    std::memcpy(copy, text->c_str(), text->size() + 1);
    *out = copy;
    return {};
}

}  // namespace tilewise::capi

extern "C" {

const char* tilewise_last_error(void) { return tilewise::capi::last_error().c_str(); }

void tilewise_free(char* text) { std::free(text); }

}  // extern "C"
