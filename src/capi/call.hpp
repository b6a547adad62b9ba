// SPDX-License-Identifier: MIT
// The border between C and C++: nothing that is thrown crosses it, and every failure leaves a message behind.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "tilewise/tilewise.h"

namespace tilewise::capi {

std::string& last_error();  // of this thread

// Runs `body`; its error, or what it throws, becomes the status and the message.
template <class Body>
tilewise_status guarded(const Body& body) noexcept {
    try {
        last_error().clear();
        const Status status = body();
        if (status) return TILEWISE_OK;
        last_error() = status.error().message;
        return static_cast<tilewise_status>(status.error().code);
    } catch (const std::exception& error) {
        try {
            last_error() = error.what();
        } catch (...) {
            // Not even the message fits; the status still says what kind of failure it was.
        }
        return TILEWISE_INTERNAL;
    }
}

// Runs `body` and hands its text out through `out`.
tilewise_status give_text(char** out, const std::function<Result<std::string>()>& body) noexcept;

// A struct of the caller, whose first field is its size. One that is shorter than ours is from an older header: what it
// lacks stays as it is in `out`. One that is longer is from a newer header, and may not use what this library does not know.
template <class T>
Status read_sized(const T* given, std::string_view name, T& out) {
    if (given->size < sizeof(given->size)) {
        return usage_error(std::string(name) + ": its size field is not set; it is sizeof the struct");
    }
    std::memcpy(&out, given, std::min(given->size, sizeof(T)));
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    for (std::size_t i = sizeof(T); i < given->size; ++i) {
        if (bytes[i] != 0) return usage_error(std::string(name) + ": uses fields of a newer library than this one");
    }
    return {};
}

}  // namespace tilewise::capi
