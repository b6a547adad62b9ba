// SPDX-License-Identifier: MIT
// HIP kernels: clang with the AMDGPU target, run as a process of its own, or hiprtc where there is none. Nothing else of ROCm is needed:
// kernels include no header and link no library of it. What they build is read again: it must be for the arch, and says what its kernels
// need.
#include <fmt/core.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "base/files.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "build/amdgpu_object.hpp"
#include "build/compile.hpp"
#include "build/hiprtc.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {
namespace {

constexpr int kOldestAmdClang = 19, kNewestAmdClang = 26;  // the newest that is looked for by its number
constexpr std::string_view kNeeded = "clang 19 or newer with the AMDGPU target, 22 for gfx950";

int major_of(const Toolchain& found) {
    return static_cast<int>(parse_integer(split(found.version, '.')[0]).value_or(0));
}

// Clang's answer to the question for the processors of the target; empty where it does not have the target. Asked once.
std::string known_chips(const std::string& path) {
    static std::mutex mutex;
    static std::map<std::string, std::string> known;
    {
        const std::scoped_lock lock(mutex);
        if (const auto at = known.find(path); at != known.end()) return at->second;
    }
    // Outside the lock, so that a fork meanwhile leaves no locked mutex behind.
    ProcessSpec spec;
    spec.argv = {path, "--target=amdgcn-amd-amdhsa", "--print-supported-cpus"};
    spec.environment = {{"LC_ALL", "C"}};
    spec.time_limit = std::chrono::seconds(10);
    const auto outcome = run_process(spec);
    const bool answered = outcome && (outcome->succeeded() || outcome->unknown);
    if (!answered || outcome->output.find("gfx") == std::string::npos) return {};
    const std::scoped_lock lock(mutex);
    return known.emplace(path, outcome->output).first->second;
}

bool knows(const std::string& path, std::string_view arch) {
    const std::string chips = known_chips(path);
    for (const std::string_view line : split(chips, '\n')) {
        if (trim(line) == arch) return true;
    }
    return false;
}

Result<Toolchain> accept(const std::string& path) {
    auto found = identify_compiler(path);
    if (!found) return found;
    if (found->kind != "clang++" || major_of(*found) < kOldestAmdClang) {
        return toolchain_error(fmt::format("'{}' is {} {}; need {}", path, found->kind, found->version, kNeeded));
    }
    if (known_chips(path).empty()) {
        return toolchain_error(
            fmt::format("'{}' is clang++ {} without the AMDGPU target; need {}", path, found->version, kNeeded));
    }
    return found;
}

std::vector<std::string> amdclang_names() {
    std::vector<std::string> names;
    if (const char* rocm = secure_getenv("ROCM_PATH")) names.push_back(fmt::format("{}/llvm/bin/clang++", rocm));
    for (int version = kNewestAmdClang; version >= kOldestAmdClang; --version) {
        names.push_back(fmt::format("clang++-{}", version));
    }
    names.emplace_back("clang++");
    return names;
}

Result<Toolchain> named_amdclang(const std::string& name) {
    const auto path = program_on_path(name);
    if (!path) {
        return toolchain_error(
            fmt::format("the compiler '{}' (TILEWISE_AMDCLANG) is not there; need {}", name, kNeeded));
    }
    auto found = accept(*path);
    if (found) return found;
    return toolchain_error(fmt::format("the compiler of TILEWISE_AMDCLANG cannot be used: {}", found.error().message));
}

// One that is named must do.
Result<Toolchain> find_amd_compiler(const BuildSettings& settings, std::string_view) {
    if (!settings.amdclang.empty()) return named_amdclang(settings.amdclang);
    if (!settings.hiprtc.empty()) return find_hiprtc(settings.hiprtc);
    std::string others;
    for (const std::string& name : amdclang_names()) {
        const auto path = program_on_path(name);
        if (!path) continue;
        auto found = accept(*path);
        if (found) return found;
        others += fmt::format("; {}", found.error().message);
    }
    auto library = find_hiprtc({});
    if (library) return library;
    others += fmt::format("; {}", library.error().message);
    return toolchain_error(
        fmt::format("no compiler for AMD GPUs ($ROCM_PATH/llvm/bin/clang++, clang++-{} to "
                    "clang++-{} and clang++ on PATH): need {}{}",
                    kNewestAmdClang, kOldestAmdClang, kNeeded, others));
}

std::vector<std::string> amd_command(const CompileJob& job, const std::string& work) {
    if (job.toolchain.kind == kHiprtc) return hiprtc_command(job);
    std::vector<std::string> argv = {job.toolchain.path, fmt::format("--offload-arch={}", job.request.arch)};
    for (const std::string_view flag : fixed_flags(job.request.suffix)) argv.emplace_back(flag);
    argv.insert(argv.end(), job.request.flags.begin(), job.request.flags.end());
    argv.push_back(fmt::format("-ffile-prefix-map={}=.", shown(work)));
    argv.insert(argv.end(), {"-I", "include", std::string(kSourceFile), "-o", object_file(job.request)});
    return argv;
}

Result<CompilerRun> run_amdclang(const CompileJob& job, const std::string& work) {
    if (!knows(job.toolchain.path, job.request.arch)) {
        return toolchain_error(fmt::format("kernel {}: '{}' is clang++ {}, which does not know {}; need {}",
                                           job.request.name, job.toolchain.path, job.toolchain.version,
                                           job.request.arch, kNeeded));
    }
    return run_program(amd_command(job, work), job, work);
}

Result<CompilerRun> run_amd_compiler(const CompileJob& job, const std::string& work) {
    auto run = job.toolchain.kind == kHiprtc ? run_hiprtc(job, work) : run_amdclang(job, work);
    if (!run || !run->failure.empty()) return run;
    const auto object = read_file(fmt::format("{}/{}", work, object_file(job.request)));
    if (!object) return run;  // and is refused as no object
    if (auto status = check_amdgpu_object(*object, job.request.arch); !status) {
        run->failure = status.error().message;
        return run;
    }
    const auto resources = amdgpu_resources(*object);
    if (resources) {
        run->resources = *resources;
    } else {
        run->failure = resources.error().message;
    }
    return run;
}

}  // namespace

constinit const Compiler kAmdCompiler = {
    .name = "clang for AMD GPUs",
    .way_out =
        "Install it (Debian: apt install clang-22 lld-22, or ROCm) or name it with TILEWISE_AMDCLANG; "
        "TILEWISE_HIPRTC names ROCm's hiprtc",
    .reads_headers = true,
    .find = find_amd_compiler,
    .command = amd_command,
    .run = run_amd_compiler,
};

}  // namespace tilewise
