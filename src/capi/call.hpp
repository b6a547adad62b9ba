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
#include "capi/handle_table.hpp"
#include "tilewise/tilewise.h"

namespace tilewise::capi {

std::string& last_error();  // of this thread

tilewise_status fail(const Error& error) noexcept;
tilewise_status fail_with(const char* what) noexcept;  // something was thrown

// Runs `body`; its error, or what it throws, becomes the status and the message.
template <class Body>
tilewise_status guarded(const Body& body) noexcept {
    try {
        last_error().clear();
        const Status status = body();
        return status ? TILEWISE_OK : fail(status.error());
    } catch (const std::exception& error) {
        return fail_with(error.what());
    } catch (...) {
        return fail_with("an unknown exception");
    }
}

// Runs `body` on what is behind the handle, which must be open.
template <class T, class Body>
tilewise_status with(const T* handle, const Body& body) noexcept {
    return guarded([&]() -> Status {
        const Pinned<T> pinned(handle);
        if (!pinned) return not_open(handle);
        return body(*pinned);
    });
}

// Hands a copy of a text out, to be freed with tilewise_free.
Status give(char** out, const Result<std::string>& text);

// Runs `body` and hands its text out through `out`, which is NULL after a failure.
template <class Body>
tilewise_status give_text(char** out, const Body& body) noexcept {
    return guarded([&]() -> Status {
        if (!out) return usage_error("the output pointer is NULL");
        *out = nullptr;
        return give(out, body());
    });
}

template <class T, class Body>
tilewise_status give_text_of(const T* handle, char** out, const Body& body) noexcept {
    return give_text(out, [&]() -> Result<std::string> {
        const Pinned<T> pinned(handle);
        if (!pinned) return not_open(handle);
        return body(*pinned);
    });
}

// A value of what is behind a handle; `otherwise` and a message when it is not open.
template <class T, class Value, class Body>
Value value_of(const T* handle, Value otherwise, const Body& body) noexcept {
    Value value = otherwise;
    static_cast<void>(with(handle, [&](T& object) -> Status {
        value = body(object);
        return {};
    }));
    return value;
}

// Closes a handle; one that is not open leaves a message, and nothing else happens. NULL is fine.
template <class T>
void close(T* handle) noexcept {
    static_cast<void>(guarded([&]() -> Status {
        if (!handle) return {};
        if (HandleTable::remove(HandleKindOf<T>::value, reinterpret_cast<std::uintptr_t>(handle))) return {};
        return not_open(handle);
    }));
}

// More than any struct of ours will ever be: a size beyond it was never set.
inline constexpr std::size_t kMaxStructBytes = 4096;

// A struct of the caller, whose first field is its size. One that is shorter than ours is from an older header: what it
// lacks stays as it is in `out`. One that is longer is from a newer header, and may not use what this library does not know.
template <class T>
Status read_sized(const T* given, std::string_view name, T& out) {
    if (given->size < sizeof(given->size) || given->size > kMaxStructBytes) {
        return usage_error(std::string(name) + ": its size field is not set; it is sizeof the struct");
    }
    std::memcpy(&out, given, std::min(given->size, sizeof(T)));
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    for (std::size_t i = sizeof(T); i < given->size; ++i) {
        if (bytes[i] != 0) return usage_error(std::string(name) + ": uses fields of a newer library than this one");
    }
    return {};
}

// The other way: fills in what the caller's struct has room for.
template <class T>
Status write_sized(const T& value, std::string_view name, T* out) {
    T given{};
    if (!out) return usage_error(std::string(name) + ": the output pointer is NULL");
    if (auto status = read_sized(out, name, given); !status) return status;
    const std::size_t size = out->size;
    std::memcpy(out, &value, std::min(size, sizeof(T)));
    out->size = size;
    return {};
}

}  // namespace tilewise::capi
