// SPDX-License-Identifier: MIT
#include "build/compile.hpp"

#include <elf.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/files.hpp"
#include "base/process.hpp"
#include "base/sha256.hpp"
#include "base/trust.hpp"
#include "build/amdgpu_object.hpp"
#include "build/code_suffix.hpp"

namespace tilewise {
namespace {

struct Kind {
    std::string_view suffix;
    std::string_view product;
    const Compiler* compiler;
    bool (*is_whole)(std::string_view file);
};

constexpr Elf64_Half kAnyMachine = 0;
constexpr Elf64_Half kCuda = 190;  // EM_CUDA, which not every elf.h has

// A file of the right kind that ends where its own headers say; a linker that was killed or out of space leaves less.
bool is_whole_elf(std::string_view file, Elf64_Half type, Elf64_Half machine) {
    Elf64_Ehdr header{};
    if (file.size() < sizeof header) return false;
    std::memcpy(&header, file.data(), sizeof header);
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == type &&
           (machine == kAnyMachine || header.e_machine == machine) && header.e_shoff <= file.size() &&
           std::size_t{header.e_shnum} * header.e_shentsize <= file.size() - header.e_shoff;
}

// Says what it is for and ends with the end of a function.
bool is_whole_ptx(std::string_view file) {
    const auto has = [&](std::string_view word) { return file.find(word) != std::string_view::npos; };
    const std::size_t last = file.find_last_not_of(" \n");
    return has("\n.version ") && has("\n.target ") && has(".entry ") && !has(std::string_view("\0", 1)) &&
           last != std::string_view::npos && file[last] == '}';
}

bool is_shared_object(std::string_view file) { return is_whole_elf(file, ET_DYN, kAnyMachine); }
bool is_cubin(std::string_view file) { return is_whole_elf(file, ET_EXEC, kCuda); }
bool is_hsaco(std::string_view file) { return is_whole_elf(file, ET_DYN, kAmdGpuMachine); }

constexpr std::array<Kind, 6> kKinds = {{{kSharedObject, "shared object", &kHostCompiler, is_shared_object},
                                         {kEmulatedCode, "shared object", &kHostCompiler, is_shared_object},
                                         {kExtension, "shared object", &kHostCompiler, is_shared_object},
                                         {kCubin, "cubin", &kNvrtcCompiler, is_cubin},
                                         {kPtx, "PTX", &kNvrtcCompiler, is_whole_ptx},
                                         {kHsaco, "code object", &kAmdCompiler, is_hsaco}}};

const Kind* kind_of(std::string_view suffix) {
    for (const Kind& kind : kKinds) {
        if (kind.suffix == suffix) return &kind;
    }
    return nullptr;
}

Error unknown_kind(std::string_view suffix) {
    return {ErrorCode::toolchain, fmt::format("nothing here builds {} files", suffix)};
}

// With the rights of a group or of capabilities we still write as the user who started us, who could exchange source and
// code on the way.
Error exchangeable() {
    return {
        ErrorCode::toolchain,
        fmt::format("this program has raised rights, but what it builds would belong to user {}, who started it, and "
                    "could be exchanged. A set-user-ID program, or one without raised rights, can build",
                    getuid())};
}

Status write_source(const CompileJob& job, const std::string& work) {
    if (auto status = make_directories(work + "/entry"); !status) return status;
    return write_file(fmt::format("{}/{}", work, kSourceFile), job.request.source);
}

Status write_headers(const CompileJob& job, const std::string& work) {
    if (job.request.suffix == kExtension) return {};  // it names its own
    const auto headers = job.headers.included_by(job.request.source);
    if (!headers) return headers.error();
    if (auto status = make_directories(work + "/include"); !status) return status;
    for (const KernelHeader* header : *headers) {
        const std::string path = work + "/include/" + header->path();
        if (auto status = make_directories(path.substr(0, path.rfind('/'))); !status) return status;
        if (auto status = write_file(path, header->text()); !status) return status;
    }
    return {};
}

// Whether the disk is the reason: compilers say so in many words and languages, so we try ourselves.
Status room_left(const std::string& work) {
    constexpr std::size_t kEnough = std::size_t{1} << 20;
    const std::string path = work + "/probe";
    auto status = write_file(path, std::string(kEnough, '\0'));
    static_cast<void>(remove_tree(path));
    return status;
}

// The first error is the one that explains, the last lines say how it ended.
std::string excerpt(const std::string& log) {
    constexpr std::size_t kEach = 2000;
    if (log.size() <= 2 * kEach) return log;
    return fmt::format("{}\n[... {} bytes ...]\n{}", log.substr(0, kEach), log.size() - 2 * kEach,
                       log.substr(log.size() - kEach));
}

CompileFault refused(const CompileJob& job, const Kind& kind, const std::string& work, const CompilerRun& run) {
    const std::string line = print_command(kind.compiler->command(job, work));
    if (auto room = room_left(work); !room) return {true, room.error().message};
    // Best effort: the message has what counts anyway.
    if (!kind.compiler->reads_headers) static_cast<void>(write_headers(job, work));
    static_cast<void>(write_file(work + "/command.txt", line + "\n"));
    static_cast<void>(write_file(work + "/log.txt", run.log));
    const std::string why = run.failure.empty() ? fmt::format("the compiler wrote no {}", kind.product) : run.failure;
    const std::string_view what = job.request.suffix == kExtension ? "" : "kernel ";
    return {false, fmt::format("{}{} cannot be compiled by {} {}: {}\ncommand: {}\nlog:\n{}", what, job.request.name,
                               job.toolchain.kind, job.toolchain.version, why, line, excerpt(run.log))};
}

Manifest describe(const CompileJob& job, const CompilerRun& run, std::string_view object) {
    Manifest manifest;
    manifest.digest = job.digest;
    manifest.kernel = job.request.name;
    manifest.arch = job.request.arch;
    manifest.flags = job.request.flags;
    manifest.compiler = fmt::format("{} {}", job.toolchain.kind, job.toolchain.version);
    manifest.file = "kernel" + job.request.suffix;
    manifest.size = static_cast<std::int64_t>(object.size());
    manifest.sha256 = sha256_hex(object);
    manifest.created = time_text();
    manifest.resources = run.resources;
    return manifest;
}

std::string how_it_ended(const ProcessOutcome& outcome, std::chrono::milliseconds limit) {
    if (outcome.timed_out) {
        return fmt::format("it took longer than {} s (TILEWISE_COMPILE_TIMEOUT_S)",
                           std::chrono::duration<double>(limit).count());
    }
    if (outcome.signal != 0) return fmt::format("the compiler was ended by signal {}", outcome.signal);
    if (outcome.exit_code != 0) return fmt::format("the compiler ended with code {}", outcome.exit_code);
    return {};
}

}  // namespace

std::string object_file(const BuildRequest& request) { return "entry/kernel" + request.suffix; }

Result<CompilerRun> run_program(const std::vector<std::string>& argv, const CompileJob& job, const std::string& work) {
    ProcessSpec spec;
    spec.argv = argv;
    spec.directory = work;
    // The compiler's own temporary files go where they are removed with the rest even if all of us are killed: beside
    // `work`, said so that nobody can lead it elsewhere.
    spec.environment = {{"TMPDIR", ".."}, {"LC_ALL", "C"}};
    spec.time_limit = job.time_limit;
    spec.stop = job.stop;
    auto outcome = run_process(spec);
    if (!outcome) return outcome.error();
    CompilerRun run;
    // In a program that collects all child processes the exit code is lost; the file then speaks for itself.
    if (!outcome->succeeded() && !outcome->unknown) run.failure = how_it_ended(*outcome, job.time_limit);
    run.log = std::move(outcome->output);
    return run;
}

const Compiler* compiler_of(std::string_view suffix) {
    const Kind* kind = kind_of(suffix);
    return kind ? kind->compiler : nullptr;
}

Result<Toolchain> find_toolchain(std::string_view suffix, const BuildSettings& settings) {
    const Compiler* compiler = compiler_of(suffix);
    if (!compiler) return unknown_kind(suffix);
    if (!trusts_owner(geteuid())) return exchangeable();
    auto found = compiler->find(settings, suffix);
    if (found) return found;
    return Error{found.error().code, fmt::format("{}. {}", found.error().message, compiler->way_out)};
}

std::variant<Manifest, CompileFault> compile_kernel(const CompileJob& job, const std::string& folder) {
    const Kind* kind = kind_of(job.request.suffix);
    if (!kind) return CompileFault{false, unknown_kind(job.request.suffix).message};
    const std::string work = folder + "/work";
    if (auto status = write_source(job, work); !status) return CompileFault{true, status.error().message};
    if (kind->compiler->reads_headers) {
        if (auto status = write_headers(job, work); !status) return CompileFault{true, status.error().message};
    }

    const auto run = kind->compiler->run(job, work);
    if (!run) return CompileFault{false, run.error().message};
    if (!run->failure.empty()) return refused(job, *kind, work, *run);
    const std::string object_path = fmt::format("{}/{}", work, object_file(job.request));
    const auto object = read_file(object_path);
    if (!object || !kind->is_whole(*object)) return refused(job, *kind, work, *run);

    // Written again, so that it has our mode, whatever the umask, and is no file that the compiler may still have open.
    Manifest manifest = describe(job, *run, *object);
    auto status = write_file(object_path, *object);
    if (status) status = write_file(work + "/entry/manifest.json", manifest_json(manifest).dump(2) + "\n");
    if (!status) return CompileFault{true, status.error().message};
    return manifest;
}

}  // namespace tilewise
