// SPDX-License-Identifier: MIT
// Errors as values: Result<T> holds a T or an Error. Every fallible function in the library returns one;
// exceptions do not cross a module boundary. The codes are also the exit codes of the CLI.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace tilewise {

enum class ErrorCode {
    check_failed = 1,
    usage = 2,
    unsupported = 3,
    toolchain = 4,
    device = 5,
};

struct Error {
    ErrorCode code = ErrorCode::usage;
    std::string message;  // what, why, and the way out

    bool operator==(const Error&) const = default;
};

// The two kinds of error that parsing and checking produce.
inline Error usage_error(std::string message) { return {ErrorCode::usage, std::move(message)}; }
inline Error unsupported_error(std::string message) { return {ErrorCode::unsupported, std::move(message)}; }

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    // A temporary gives the value itself, not a reference into it: `for (x : *make())` must not outlive what it walks over.
    T& value() & { return std::get<0>(state_); }
    const T& value() const& { return std::get<0>(state_); }
    T value() && { return std::get<0>(std::move(state_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    const Error& error() const { return std::get<1>(state_); }

private:
    std::variant<T, Error> state_;
};

// The result of something that yields nothing but may fail.
class [[nodiscard]] Status {
public:
    Status() = default;
    Status(Error error) : error_(std::move(error)) {}

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    const Error& error() const { return *error_; }

private:
    std::optional<Error> error_;
};

}  // namespace tilewise
