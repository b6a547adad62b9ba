// SPDX-License-Identifier: MIT
// HIP kernels by hiprtc, inside this process. It has a lock of its own, so that kernels are compiled one after the other, and that a
// child of a process that has used it cannot.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "base/files.hpp"
#include "base/fork_safe_mutex.hpp"
#include "build/code_suffix.hpp"
#include "build/hiprtc.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {
namespace {

// What hiprtc sees to itself: that it compiles HIP, for the device alone.
constexpr std::array<std::string_view, 6> kItsOwn = {
    "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpulib", "-nostdinc"};
// Without it hiprtc includes a header of its own before each source, which takes longer than our kernels. Those before ROCm 6.3 do not
// know it.
constexpr std::string_view kNoHeader = "--hiprtc-no-builtin-header";

struct Output {
    std::string failure;  // how it ended, when it did not end well
    std::string log;
    std::string code;
};

// Empty when it cannot be had.
std::string read(HiprtcProgram* program, HiprtcResult (*size_of)(HiprtcProgram*, std::size_t*),
                 HiprtcResult (*get)(HiprtcProgram*, char*)) {
    std::size_t size = 0;
    if (size_of(program, &size) != HiprtcResult::success) return {};
    std::string text(size, '\0');
    return get(program, text.data()) == HiprtcResult::success ? text : std::string();
}

// A source and the headers that it includes, by one name each.
struct Text {
    std::string source;
    std::vector<std::string> headers, names;
};

std::vector<const char*> starts(const std::vector<std::string>& texts) {
    std::vector<const char*> all;
    all.reserve(texts.size());
    for (const std::string& text : texts) all.push_back(text.c_str());
    return all;
}

Output compile_text(const Hiprtc& hiprtc, const Text& text, const std::vector<std::string>& options) {
    const auto words = starts(options), headers = starts(text.headers), names = starts(text.names);
    HiprtcProgram* program = nullptr;
    auto result = hiprtc.create(&program, text.source.c_str(), "source.cpp", static_cast<int>(names.size()),
                                headers.data(), names.data());
    if (result != HiprtcResult::success) return {hiprtc.error_text(result), {}, {}};
    Output output;
    result = hiprtc.compile(program, static_cast<int>(words.size()), words.data());
    output.log = read(program, hiprtc.log_size, hiprtc.log);
    while (!output.log.empty() && output.log.back() == '\0') output.log.pop_back();
    if (result == HiprtcResult::success) {
        output.code = read(program, hiprtc.code_size, hiprtc.code);
    } else {
        output.failure = hiprtc.error_text(result);
    }
    hiprtc.destroy(&program);
    return output;
}

std::vector<std::string> options_for(std::string_view arch, bool has_header) {
    std::vector<std::string> options = {fmt::format("--offload-arch={}", arch)};
    if (!has_header) options.emplace_back(kNoHeader);
    for (const std::string_view flag : fixed_flags(kHsaco)) {
        if (std::find(kItsOwn.begin(), kItsOwn.end(), flag) == kItsOwn.end()) options.emplace_back(flag);
    }
    return options;
}

// The options with which a hiprtc compiles a kernel that does nothing for an arch.
Result<std::vector<std::string>> ask(const std::string& path, const std::string& arch) {
    const auto hiprtc = load_hiprtc(path);
    if (!hiprtc) return hiprtc.error();
    std::string refusal;
    for (const bool has_header : {false, true}) {
        std::vector<std::string> options = options_for(arch, has_header);
        const Output output =
            compile_text(*hiprtc, {"extern \"C\" __attribute__((global)) void stub() {}\n", {}, {}}, options);
        if (output.failure.empty()) return options;
        refusal = fmt::format("{}: {}", output.failure, output.log);
    }
    return toolchain_error(fmt::format("{} compiles nothing for {}: {}", path, arch, refusal));
}

struct Known {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> options;  // of a path, for an arch
    pid_t owner = 0;                                                                  // who asked first
};

Known& known() {
    static auto* all = new Known;  // never destroyed: threads may still compile when the process ends
    return *all;
}

// Asked once; a failure is not remembered.
Result<std::vector<std::string>> known_options(const std::string& path, const std::string& arch) {
    const std::pair key(path, arch);
    {
        const std::scoped_lock lock(fork_safe_mutex());
        Known& all = known();
        if (all.owner != 0 && all.owner != getpid()) {
            return toolchain_error(
                "hiprtc was used before this process was forked, and cannot be used here; compile before, start the "
                "workers by spawning, or use clang");
        }
        all.owner = getpid();
        if (const auto at = all.options.find(key); at != all.options.end()) return at->second;
    }
    // Without the lock, which a fork waits for: asking twice does no harm.
    auto options = ask(path, arch);
    if (!options) return options;
    const std::scoped_lock lock(fork_safe_mutex());
    return known().options.emplace(key, *options).first->second;
}

}  // namespace

std::vector<std::string> hiprtc_command(const CompileJob& job) {
    const auto known = known_options(job.toolchain.path, job.request.arch);
    std::vector<std::string> command = known ? *known : options_for(job.request.arch, false);
    command.insert(command.begin(), job.toolchain.path);
    command.insert(command.end(), job.request.flags.begin(), job.request.flags.end());
    return command;
}

Result<CompilerRun> run_hiprtc(const CompileJob& job, const std::string& work) {
    if (const auto options = known_options(job.toolchain.path, job.request.arch); !options) {
        return toolchain_error(fmt::format("kernel {}: {}", job.request.name, options.error().message));
    }
    const auto hiprtc = load_hiprtc(job.toolchain.path);
    if (!hiprtc) return hiprtc.error();
    const auto headers = job.headers.included_by(job.request.source);
    if (!headers) return headers.error();
    Text text{job.headers.with_rooted_includes(job.request.source, ""), {}, {}};
    for (const KernelHeader* header : *headers) {
        text.headers.push_back(job.headers.with_rooted_includes(header->text(), header->path()));
        text.names.push_back(header->path());
    }
    std::vector<std::string> options = hiprtc_command(job);
    options.erase(options.begin());
    Output output = compile_text(*hiprtc, text, options);
    CompilerRun run;
    run.failure = std::move(output.failure);
    run.log = std::move(output.log);
    if (!run.failure.empty()) return run;
    const auto status = write_file(fmt::format("{}/{}", work, object_file(job.request)), output.code);
    if (!status) run.failure = status.error().message;
    return run;
}

}  // namespace tilewise
