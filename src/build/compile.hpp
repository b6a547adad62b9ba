// SPDX-License-Identifier: MIT
// One run of the host compiler in a folder of its own: headers and source are written out, the shared object checked,
// its manifest written. The result depends on the request and the compiler only, not on where or when.
#pragma once

#include <chrono>
#include <string>
#include <variant>

#include "base/result.hpp"
#include "build/build_request.hpp"
#include "build/manifest.hpp"
#include "build/toolchain.hpp"

namespace tilewise {

struct CompileJob {
    const BuildRequest& request;
    std::string digest;
    const Toolchain& toolchain;
    std::chrono::milliseconds time_limit;
    const KernelHeaders& headers = KernelHeaders::embedded();
};

struct CompileFault {
    bool storage = false;  // the folder cannot take the files; the same may work elsewhere
    std::string message;   // what happened, the command and the log
};

// In `folder` (absolute, empty) appears work/entry with kernel, source and manifest; work also has the headers and,
// after a failure, the command and the log.
std::variant<Manifest, CompileFault> compile_kernel(const CompileJob& job, const std::string& folder);

}  // namespace tilewise
