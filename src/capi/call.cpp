// SPDX-License-Identifier: MIT
#include "capi/call.hpp"

#include <cstdlib>
#include <new>

namespace tilewise::capi {

std::string& last_error() {
    thread_local std::string message;
    return message;
}

tilewise_status give_text(char** out, const std::function<Result<std::string>()>& body) noexcept {
    return guarded([&]() -> Status {
        if (!out) return usage_error("the output pointer is NULL");
        *out = nullptr;
        const Result<std::string> text = body();
        if (!text) return text.error();
        char* copy = static_cast<char*>(std::malloc(text->size() + 1));
        if (!copy) throw std::bad_alloc();
        std::memcpy(copy, text->c_str(), text->size() + 1);
        *out = copy;
        return {};
    });
}

}  // namespace tilewise::capi

extern "C" {

const char* tilewise_last_error(void) { return tilewise::capi::last_error().c_str(); }

void tilewise_free(char* text) { std::free(text); }

}  // extern "C"
