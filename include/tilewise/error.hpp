// SPDX-License-Identifier: MIT
// Errors as values, for the C++ interface: a Result holds a value or an Error, a Status nothing or an Error. Nothing here
// throws but for lack of memory; taking the value of a failed Result ends the program with its message.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tilewise/tilewise.h"

namespace tilewise {

struct Error {
    tilewise_status code = TILEWISE_INTERNAL;
    std::string message;  // what, why, and the way out

    // The error of a call of the C interface in this thread that returned `code`.
    static Error last(tilewise_status code) { return {code, tilewise_last_error()}; }
};

namespace detail {
[[noreturn]] inline void no_value(const Error& error) {
    std::fprintf(stderr, "tilewise: the value of a failed result was used: %s\n", error.message.c_str());
    std::abort();
}

// A text that the library handed out.
inline std::string take(char* text) {
    std::string copy = text ? text : "";
    tilewise_free(text);
    return copy;
}

// A text as a value in JSON, whatever characters it has.
inline std::string quoted(const std::string& text) {
    constexpr const char* kDigits = "0123456789abcdef";
    std::string json = "\"";
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            json += {'\\', c};
        } else if (code < 0x20) {
            json += {'\\', 'u', '0', '0', kDigits[code / 16], kDigits[code % 16]};
        } else {
            json += c;
        }
    }
    return json + '"';
}
}  // namespace detail

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    T& value() & { return check(), std::get<0>(state_); }
    const T& value() const& { return check(), std::get<0>(state_); }
    T value() && { return check(), std::get<0>(std::move(state_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    const Error& error() const { return std::get<1>(state_); }  // of a failed result only

private:
    void check() const {
        if (!ok()) detail::no_value(error());
    }
    std::variant<T, Error> state_;
};

class [[nodiscard]] Status {
public:
    Status() = default;
    Status(Error error) : error_(std::move(error)) {}
    // The status of a call of the C interface.
    static Status of(tilewise_status code) { return code == TILEWISE_OK ? Status() : Status(Error::last(code)); }

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    const Error& error() const { return *error_; }  // of a failed status only

private:
    std::optional<Error> error_;
};

namespace detail {
// Calls a function of the C interface that hands out a text.
template <class Call>
Result<std::string> text_of(const Call& call) {
    char* text = nullptr;
    const tilewise_status code = call(&text);
    if (code != TILEWISE_OK) return Error::last(code);
    return take(text);
}
}  // namespace detail

// Whether the library that was loaded fits the headers this was compiled with. Call it first.
inline Status check_abi() { return Status::of(tilewise_check_abi(TILEWISE_ABI_VERSION)); }

}  // namespace tilewise
