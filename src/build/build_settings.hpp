// SPDX-License-Identifier: MIT
// Where kernels are kept and how they are compiled, as the environment says. Everything in build/ takes these as
// values; only build_settings() and the search for a compiler (PATH, VIRTUAL_ENV, HOME) look at the environment.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace tilewise {

struct BuildSettings {
    std::string cache_dir;  // an absolute path; empty when the environment names no place
    std::int64_t cache_max_bytes = std::int64_t{2} << 30;
    std::int64_t records_max_bytes = std::int64_t{64} << 20;  // of measurements, kept beside the cache
    std::string compiler;  // a name or a path; empty: the usual names are looked for on PATH
    std::string nvrtc;     // the path of the CUDA compiler library; empty: the usual places are looked at
    std::string amdclang;  // the compiler of HIP kernels, a name or a path; empty: the usual places are looked at
    std::string hiprtc;    // the path of ROCm's compiler library, which then is taken; empty: where there is no clang
    // The CUDA driver here can load code of this version, as it says itself: 13000 is CUDA 13.0. None: there is no driver, and kernels
    // are built for another machine.
    std::optional<int> driver_version;
    std::chrono::milliseconds compile_limit = std::chrono::seconds(60);
    // Whether GPU kernels are compiled for the epilogue of each problem, or once for all.
    bool exact_epilogues = true;
    std::vector<std::string> packs;
    // Whether a built-in CPU kernel may serve while a better one is compiled.
    bool background = true;
    // Once it is true, compilers are ended, and what is not built yet is an error. Must outlive the builder.
    const std::atomic<bool>* stop = nullptr;
    std::string temp_dir = "/tmp";  // where a process builds for itself when the cache cannot be used
};

// A variable with a value that makes no sense is an error that names it.
Result<BuildSettings> build_settings();

}  // namespace tilewise
