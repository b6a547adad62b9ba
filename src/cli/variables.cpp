// SPDX-License-Identifier: MIT
#include "cli/variables.hpp"

#include <unistd.h>

#include <algorithm>

#include "device/cpu/thread_pool.hpp"
#include "select/runtime.hpp"

namespace tilewise::cli {
namespace {

constexpr std::string_view kPrefix = "TILEWISE_";
constexpr std::string_view kOfTests[] = {"TILEWISE_TEST_", "TILEWISE_WRITE_"};

template <class T>
Status status_of(const Result<T>& result) {
    return result ? Status() : Status(result.error());
}

constexpr Variable kVariables[] = {
    {"TILEWISE_CACHE_DIR",
     "where built kernels, tuning results and records are kept; else $XDG_CACHE_HOME/tilewise, ~/.cache/tilewise"},
    {"TILEWISE_CACHE_MAX", "most bytes of built kernels to keep, such as 2G"},
    {"TILEWISE_RECORDS_MAX", "most bytes of measurements to keep, such as 256M; 64M, and 0 keeps none"},
    {"TILEWISE_VERBOSE", "1: one line for each choice, build, load and run; 2: more about choices"},
    {"TILEWISE_THREADS", "CPU threads to use; else OMP_NUM_THREADS, else every CPU this process may use",
     [] { return status_of(default_threads()); }},
    {"OMP_NUM_THREADS", "the same where TILEWISE_THREADS is not set, as far as there are CPUs"},
    {"TILEWISE_PLAN_CACHE", "problems whose kernels are kept ready; 4096",
     [] { return status_of(plan_cache_limit()); }},
    {"TILEWISE_CXX", "the compiler for CPU kernels; else the first on PATH that is new enough"},
    {"TILEWISE_NVRTC", "the file of NVRTC, the compiler for CUDA kernels; else it is looked for"},
    {"TILEWISE_AMDCLANG", "clang, the compiler for HIP kernels; else it is looked for beside ROCm and on PATH"},
    {"TILEWISE_HIPRTC",
     "the file of hiprtc, ROCm's compiler library for HIP kernels; else it is looked for where there is no clang"},
    {"TILEWISE_HIP", "the file of the HIP runtime, which drives AMD GPUs; else libamdhip64.so.7 or .6 is loaded"},
    {"TILEWISE_COMPILE_TIMEOUT_S", "seconds a compiler may take; 60"},
    {"TILEWISE_EPILOGUES",
     "exact: GPU kernels are compiled for each epilogue, the default; any: once for all, which are slower"},
    {"TILEWISE_BACKGROUND", "0: a first call waits for the compiler, also where a built-in CPU kernel could serve; 1"},
    {"TILEWISE_MODEL_DIR",
     "a learned selection model, or a folder of them; then $XDG_DATA_HOME/tilewise/models, "
     "~/.local/share/tilewise/models"},
    {"TILEWISE_PACKS", "packs of built kernels to look in, separated by ':'"},
    {"TILEWISE_ARCH_FILE", "an arch file to add, as --arch-file does"},
    {"TILEWISE_EMULATE_SEED", "the order in which threads of an emulated GPU go on, a number"},
    {"TILEWISE_SWEEP_FAULT",
     "KIND:TEXT, for tests: kernels of a sweep that contain the text crash, hang, are wrong, or clock"},
    {"TILEWISE_LIBRARY", "the library the Python package loads"},
    {"TILEWISE_TORCH_CPP",
     "the C++ ops of tilewise.torch: 1: compiled behind the Python ops, the default; wait: the import waits; 0: none"},
    {"TILEWISE_COMPAT_DTYPE", "element type of the original's functions and gpu_helper; fp16"},
    {"TILEWISE_COMPAT_LAYOUT", "their layout: rcr, and of convolutions channels_last or channels_first"},
    {"TILEWISE_COMPAT_DEVICE", "their device, emulated:ARCH too; auto: the first GPU, where there is none the CPU"},
    {"TILEWISE_COMPAT_RULE_SET", "the rule set the original's functions choose from"},
    {"TILEWISE_COMPAT_KERNEL", "the one kernel the original's functions use"},
    {"TILEWISE_COMPAT_WARMUP", "runs of the original's functions before the timed ones; 0"},
    {"TILEWISE_COMPAT_REPEAT", "timed runs of the original's functions; 1"},
};

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::vector<std::string> unknown_variables() {
    std::vector<std::string> unknown;
    for (char** entry = environ; entry && *entry; ++entry) {
        const std::string_view text = *entry, name = text.substr(0, text.find('='));
        const auto is_known = [&](const Variable& variable) { return name == variable.name; };
        const auto is_of_tests = [&](std::string_view start) { return name.starts_with(start); };
        if (name.starts_with(kPrefix) && std::ranges::none_of(kVariables, is_known) &&
            std::ranges::none_of(kOfTests, is_of_tests)) {
            unknown.emplace_back(name);
        }
    }
    return unknown;
}

}  // namespace tilewise::cli
