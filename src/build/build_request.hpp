// SPDX-License-Identifier: MIT
// A request says what to compile, and has the digest that a built kernel is found by. The digest covers all that decides what the code
// does, and not the compiler: a cached kernel must be found on a machine that has none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "build/kernel_headers.hpp"

namespace tilewise {

struct BuildRequest {
    std::string name;                // of the kernel, for people; not part of the digest
    std::string source;              // the stub that instantiates a template
    std::vector<std::string> flags;  // in addition to fixed_flags(suffix)
    std::string arch;
    std::string suffix = ".so";  // what is built: see code_suffix.hpp

    bool operator==(const BuildRequest&) const = default;
};

// The flags that every kernel of this kind is compiled with; none for a kind that nothing here builds.
std::span<const std::string_view> fixed_flags(std::string_view suffix);

// 64 hex digits. An error for an include or a suffix that cannot be.
Result<std::string> digest_of(const BuildRequest& request, const KernelHeaders& headers = KernelHeaders::embedded());

bool is_digest(std::string_view text);

}  // namespace tilewise
