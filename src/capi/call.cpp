// SPDX-License-Identifier: MIT
#include "capi/call.hpp"

#include <cstdlib>
#include <cstring>

namespace tilewise::capi {

std::string& last_error() {
    thread_local std::string message;
    return message;
}

tilewise_status give_text(char** out, const std::function<Result<std::string>()>& body) noexcept {
    try {
        last_error().clear();
        if (!out) {
            last_error() = "the output pointer is NULL";
            return TILEWISE_USAGE;
        }
        *out = nullptr;
        const Result<std::string> text = body();
        if (!text) {
            last_error() = text.error().message;
            return static_cast<tilewise_status>(text.error().code);
        }
        char* copy = static_cast<char*>(std::malloc(text->size() + 1));
        if (!copy) throw std::bad_alloc();
        std::memcpy(copy, text->c_str(), text->size() + 1);
        *out = copy;
        return TILEWISE_OK;
    } catch (const std::exception& error) {
        try {
            last_error() = error.what();
        } catch (...) {
            // Not even the message fits; the status still says what kind of failure it was.
        }
        return TILEWISE_INTERNAL;
    }
}

}  // namespace tilewise::capi

extern "C" {

const char* tilewise_last_error(void) { return tilewise::capi::last_error().c_str(); }

void tilewise_free(char* text) { std::free(text); }

}  // extern "C"
