// SPDX-License-Identifier: MIT
// hiprtc, AMD's compiler as a library: it stands in where there is no clang for AMD GPUs, as on a machine that has ROCm's runtime alone.
// It needs neither a GPU nor a driver. Declared here as far as we use it, so that no header of ROCm is needed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "build/compile.hpp"
#include "build/toolchain.hpp"

namespace tilewise {

inline constexpr std::string_view kHiprtc = "hiprtc";  // the kind of its toolchain

struct HiprtcProgram;  // hiprtc's own
enum class HiprtcResult : int { success = 0 };

struct Hiprtc {
    void* library;  // the loader's handle
    const char* (*error_text)(HiprtcResult);
    HiprtcResult (*create)(HiprtcProgram**, const char* source, const char* name, int headers, const char* const* texts,
                           const char* const* names);
    HiprtcResult (*destroy)(HiprtcProgram**);
    HiprtcResult (*compile)(HiprtcProgram*, int options, const char* const*);
    HiprtcResult (*log_size)(HiprtcProgram*, std::size_t*);
    HiprtcResult (*log)(HiprtcProgram*, char*);
    HiprtcResult (*code_size)(HiprtcProgram*, std::size_t*);
    HiprtcResult (*code)(HiprtcProgram*, char*);
};

// The functions of the library at `path`, which stays loaded from now on.
Result<Hiprtc> load_hiprtc(const std::string& path);

// `wanted` is a path ($TILEWISE_HIPRTC) that must do; when it is empty, the one that the process has already, as torch brings, else
// libhiprtc.so.7 or .6 where the loader looks. Its version is what its file is called by: asked for it, hiprtc says 9.0 whatever it is.
// Not with raised rights: it takes options from the environment, which is that of the user who started us.
Result<Toolchain> find_hiprtc(const std::string& wanted);

std::vector<std::string> hiprtc_command(const CompileJob& job);
// Inside this process. It cannot be stopped, so that the time limit does not count.
Result<CompilerRun> run_hiprtc(const CompileJob& job, const std::string& work);

}  // namespace tilewise
