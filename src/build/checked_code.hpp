// SPDX-License-Identifier: MIT
// The last look at a built kernel before it is loaded, wherever it came from: only this user or root can have written it, and
// its contents are those that its manifest names. What was checked is what is loaded, whoever moves folders meanwhile.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"
#include "build/built_kernel.hpp"

namespace tilewise {

class CheckedCode {
public:
    static Result<CheckedCode> open(const BuiltKernel& kernel);

    CheckedCode(CheckedCode&& other) noexcept
        : bytes_(std::move(other.bytes_)), path_(std::move(other.path_)), shelf_(std::exchange(other.shelf_, -1)) {}
    CheckedCode& operator=(CheckedCode&&) = delete;
    CheckedCode(const CheckedCode&) = delete;
    ~CheckedCode();

    const std::string& bytes() const { return bytes_; }
    const std::string& path() const { return path_; }  // for dlopen, while this lives

private:
    CheckedCode() = default;
    Result<std::string> read(const BuiltKernel& kernel);

    std::string bytes_, path_;
    int shelf_ = -1;  // the open folder that the kernel's own folder is in
};

}  // namespace tilewise
