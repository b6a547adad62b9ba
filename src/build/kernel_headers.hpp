// SPDX-License-Identifier: MIT
// The kernel templates embedded in the library, and which of them a source includes, directly or not: what is written
// out for the compiler, and what a built kernel's digest covers. A kernel can include nothing else.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/embedded.hpp"
#include "base/result.hpp"

namespace tilewise {

class KernelHeader {
public:
    KernelHeader(std::string path, std::string_view text) : path_(std::move(path)), text_(text) {}

    const std::string& path() const { return path_; }  // as it is included: "cpu/blocked.hpp"
    std::string_view text() const { return text_; }
    // Both are worked out when first asked for: most processes need few of the headers, but those often.
    const std::string& sha256() const;
    const std::vector<std::string_view>& includes() const;  // with their quotes

private:
    void study() const;

    std::string path_;
    std::string_view text_;
    mutable std::once_flag studied_;
    mutable std::string sha256_;
    mutable std::vector<std::string_view> includes_;
};

class KernelHeaders {
public:
    explicit KernelHeaders(std::span<const EmbeddedFile> files);  // takes those under kernels/
    static const KernelHeaders& embedded();

    // Sorted by path. An include that is not one of these files is an error, since the digest could not cover it.
    Result<std::vector<const KernelHeader*>> included_by(std::string_view source) const;

    // The text of the file at `path` ("" for a kernel's source) with every include spelled from the root, line by line
    // the same otherwise: for a compiler that knows headers by one name only.
    std::string with_rooted_includes(std::string_view text, std::string_view path) const;

private:
    const KernelHeader* resolve(std::string_view include, std::string_view from) const;

    std::map<std::string, KernelHeader, std::less<>> headers_;
};

}  // namespace tilewise
