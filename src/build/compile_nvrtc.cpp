// SPDX-License-Identifier: MIT
// CUDA kernels: NVRTC, run inside this process, with source and headers in memory, to a cubin or to PTX. It is safe to
// use from several threads at once, and in a child forked while the parent compiles.
#include <fmt/core.h>

#include <atomic>
#include <utility>

#include "base/files.hpp"
#include "build/compile.hpp"
#include "build/nvrtc.hpp"
#include "config/cuda_arch.hpp"

namespace tilewise {
namespace {

using Clock = std::chrono::steady_clock;

// Until when a compilation may take, or until nobody wants it.
struct Patience {
    Clock::time_point end;
    const std::atomic<bool>* stop = nullptr;
    bool passed = false;

    bool is_stopped() const { return stop && *stop; }
};

int stop_when_over(void* data, void*) {
    auto* patience = static_cast<Patience*>(data);
    patience->passed = Clock::now() > patience->end;
    return patience->passed || patience->is_stopped() ? 1 : 0;
}

// A program of NVRTC's, destroyed with this.
class Program {
public:
    explicit Program(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
    ~Program() {
        if (program_) nvrtc_.destroy(&program_);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    NvrtcResult create(const CompileJob& job, const std::vector<const KernelHeader*>& headers) {
        std::vector<std::string> texts;  // NVRTC copies them
        std::vector<const char*> text_starts, names;
        for (const KernelHeader* header : headers) {
            texts.push_back(job.headers.with_rooted_includes(header->text(), header->path()));
            names.push_back(header->path().c_str());
        }
        for (const std::string& text : texts) text_starts.push_back(text.c_str());
        const std::string source = job.headers.with_rooted_includes(job.request.source, "");
        return nvrtc_.create(&program_, source.c_str(), "source.cpp", static_cast<int>(names.size()),
                             text_starts.data(), names.data());
    }
    NvrtcResult compile(const std::vector<std::string>& command, Patience& patience) {
        std::vector<const char*> options;  // without the path of the library
        for (std::size_t i = 1; i < command.size(); ++i) options.push_back(command[i].c_str());
        if (nvrtc_.set_callback) nvrtc_.set_callback(program_, stop_when_over, &patience);
        return nvrtc_.compile(program_, static_cast<int>(options.size()), options.data());
    }
    std::string log() const { return without_end(read(nvrtc_.log_size, nvrtc_.log)); }
    std::string code(std::string_view suffix) const {
        return suffix == kPtx ? without_end(read(nvrtc_.ptx_size, nvrtc_.ptx)) : read(nvrtc_.cubin_size, nvrtc_.cubin);
    }

private:
    static std::string without_end(std::string text) {
        while (!text.empty() && text.back() == '\0') text.pop_back();
        return text;
    }
    // Empty when it cannot be had.
    std::string read(NvrtcResult (*size_of)(NvrtcProgram*, std::size_t*),
                     NvrtcResult (*get)(NvrtcProgram*, char*)) const {
        std::size_t size = 0;
        if (size_of(program_, &size) != NvrtcResult::success) return {};
        std::string text(size, '\0');
        return get(program_, text.data()) == NvrtcResult::success ? text : std::string();
    }

    const Nvrtc& nvrtc_;
    NvrtcProgram* program_ = nullptr;
};

// Saves time and leaves the code as it is, so it is no part of the digest: what CUDA has for textures and for launches by kernels is not
// read. Older ones refuse what they do not know. Kernels of a source are not assembled side by side (--split-compile): where the time
// limit ends such a compilation, NVRTC 13.0 frees memory twice and the process dies.
constexpr std::pair kKnowsToReadLess{12, 9};
constexpr std::string_view kReadLess = "--minimal";

// A real arch (sm_90a, not compute_90a) makes NVRTC assemble the kernel, too; PTX is of a virtual one.
std::vector<std::string> nvrtc_command(const CompileJob& job, const std::string& /*work*/) {
    const auto cuda = parse_cuda_arch(job.request.arch);
    const std::string arch =
        job.request.suffix == kPtx && cuda ? fmt::format("compute_{}{}", cuda->major, cuda->minor) : job.request.arch;
    std::vector<std::string> command = {job.toolchain.path, fmt::format("--gpu-architecture={}", arch)};
    for (const std::string_view flag : fixed_flags(job.request.suffix)) command.emplace_back(flag);
    const auto version = nvrtc_version(job.toolchain.version);
    if (version && *version >= kKnowsToReadLess) command.emplace_back(kReadLess);
    command.insert(command.end(), job.request.flags.begin(), job.request.flags.end());
    return command;
}

Result<CompilerRun> run_nvrtc(const CompileJob& job, const std::string& work) {
    const auto cuda = parse_cuda_arch(job.request.arch);
    if (job.request.suffix == kPtx && (!cuda || cuda->one_chip)) {
        return Error{ErrorCode::toolchain, fmt::format("kernel {}: no PTX for {}: need an arch like sm_80, whose code "
                                                       "later chips can run; build its cubin instead",
                                                       job.request.name, job.request.arch)};
    }
    const auto nvrtc = load_nvrtc(job.toolchain.path);
    if (!nvrtc) return nvrtc.error();
    const auto headers = job.headers.included_by(job.request.source);
    if (!headers) return headers.error();
    Program program(*nvrtc);
    CompilerRun run;
    Patience patience{Clock::now() + job.time_limit, job.stop};
    if (patience.is_stopped()) return run.failure = "it was stopped", run;
    if (const auto result = program.create(job, *headers); result != NvrtcResult::success) {
        run.failure = nvrtc->error_text(result);
        return run;
    }
    const auto result = program.compile(nvrtc_command(job, work), patience);
    run.log = program.log();
    if (result != NvrtcResult::success) {
        run.failure = patience.passed         ? fmt::format("it took longer than {} s (TILEWISE_COMPILE_TIMEOUT_S)",
                                                            std::chrono::duration<double>(job.time_limit).count())
                      : patience.is_stopped() ? "it was stopped"
                                              : nvrtc->error_text(result);
        return run;
    }
    run.resources = resources_from_log(run.log);
    const std::string path = fmt::format("{}/{}", work, object_file(job.request));
    if (auto status = write_file(path, program.code(job.request.suffix)); !status) run.failure = status.error().message;
    return run;
}

Result<Toolchain> find_nvrtc_for(const BuildSettings& settings, std::string_view suffix) {
    return find_nvrtc(settings.nvrtc, settings.driver_version, suffix);
}

}  // namespace

constinit const Compiler kNvrtcCompiler = {
    .name = "NVRTC",
    .way_out = "Install it (pip install nvidia-cuda-nvrtc) or name its file with TILEWISE_NVRTC",
    .reads_headers = false,
    .find = find_nvrtc_for,
    .command = nvrtc_command,
    .run = run_nvrtc,
};

}  // namespace tilewise
