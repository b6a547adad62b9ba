// SPDX-License-Identifier: MIT
// A toolchain compiles kernels. This one is the host's C++ compiler: found on PATH or named by the user, asked for its version once
// per process. NVRTC, for CUDA, is found in nvrtc.hpp, clang for HIP in compile_amdgpu.cpp, hiprtc in hiprtc.hpp; compile.hpp has the choice
// between them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace tilewise {

struct Toolchain {
    std::string path;
    std::string kind;     // "g++" or "clang++", whatever the file is called; "nvrtc"; "hiprtc"
    std::string version;  // "12.2.0"; of NVRTC "13.0"

    bool operator==(const Toolchain&) const = default;
};

// `wanted` is a name or a path ($TILEWISE_CXX) that must do; when it is empty, the first compiler in the absolute folders of
// PATH, with raised rights in those of kTrustedPath, that is new enough. The error says what was looked for, what was found and what is needed.
Result<Toolchain> find_host_compiler(const std::string& wanted);

// An absolute path, or none: a compiler is run elsewhere than it is looked for, and where we are may be anyone's folder. A name with a
// slash is a path; others are looked for as find_host_compiler does.
std::optional<std::string> program_on_path(std::string_view name);
// Asks a program whether it is g++ or clang++, and which version.
Result<Toolchain> identify_compiler(const std::string& path);

// The compiler's words for the CPU features of an arch file: avx512_vnni is -mavx512vnni.
std::vector<std::string> host_flags(std::span<const std::string> features);

}  // namespace tilewise
