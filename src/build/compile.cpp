// SPDX-License-Identifier: MIT
#include "build/compile.hpp"

#include <elf.h>
#include <fmt/core.h>

#include <cstring>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "base/process.hpp"
#include "base/sha256.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kObject = "entry/kernel";
constexpr std::string_view kSource = "entry/source.cpp";

Status write_sources(const CompileJob& job, const std::string& work) {
    const auto headers = job.headers.included_by(job.request.source);
    if (!headers) return headers.error();
    if (auto status = make_directories(work + "/entry"); !status) return status;
    if (auto status = make_directories(work + "/include"); !status) return status;
    for (const KernelHeader* header : *headers) {
        const std::string path = work + "/include/" + header->path();
        if (auto status = make_directories(path.substr(0, path.rfind('/'))); !status) return status;
        if (auto status = write_file(path, header->text()); !status) return status;
    }
    return write_file(fmt::format("{}/{}", work, kSource), job.request.source);
}

// Its paths are relative, so that nothing of where it ran gets into the kernel and it can be run again by hand; the
// prefix map does the same for what debug flags would add.
std::vector<std::string> command(const CompileJob& job, const std::string& work) {
    std::vector<std::string> argv = {job.toolchain.path};
    for (const std::string_view flag : fixed_flags()) argv.emplace_back(flag);
    argv.insert(argv.end(), job.request.flags.begin(), job.request.flags.end());
    argv.push_back(fmt::format("-ffile-prefix-map={}=.", work));
    const std::string object = fmt::format("{}{}", kObject, job.request.suffix);
    argv.insert(argv.end(), {"-I", "include", std::string(kSource), "-o", object, "-lm", "-lc", "-lgcc"});
    return argv;
}

// A shared object that ends where its own headers say; a linker that was killed or out of space leaves less.
bool is_whole(std::string_view file) {
    Elf64_Ehdr header{};
    if (file.size() < sizeof header) return false;
    std::memcpy(&header, file.data(), sizeof header);
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_DYN &&
           header.e_shoff <= file.size() &&
           std::size_t{header.e_shnum} * header.e_shentsize <= file.size() - header.e_shoff;
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

std::string how_it_ended(const ProcessOutcome& outcome, std::chrono::milliseconds limit) {
    if (outcome.timed_out) {
        return fmt::format("it took longer than {} s (TILEWISE_COMPILE_TIMEOUT_S)",
                           std::chrono::duration<double>(limit).count());
    }
    if (outcome.signal != 0) return fmt::format("the compiler was ended by signal {}", outcome.signal);
    if (outcome.exit_code != 0) return fmt::format("the compiler ended with code {}", outcome.exit_code);
    return "the compiler wrote no shared object";
}

CompileFault refused(const CompileJob& job, const std::string& work, const ProcessOutcome& outcome) {
    const std::string line = print_command(command(job, work));
    if (auto room = room_left(work); !room) return {true, room.error().message};
    // Best effort: the message has both anyway.
    static_cast<void>(write_file(work + "/command.txt", line + "\n"));
    static_cast<void>(write_file(work + "/log.txt", outcome.output));
    return {false, fmt::format("kernel {} cannot be compiled by {} {}: {}\ncommand: {}\nlog:\n{}", job.request.name,
                               job.toolchain.kind, job.toolchain.version, how_it_ended(outcome, job.time_limit), line,
                               excerpt(outcome.output))};
}

Manifest describe(const CompileJob& job, std::string_view object) {
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
    return manifest;
}

}  // namespace

std::variant<Manifest, CompileFault> compile_kernel(const CompileJob& job, const std::string& folder) {
    const std::string work = folder + "/work";
    if (auto status = write_sources(job, work); !status) return CompileFault{true, status.error().message};

    ProcessSpec spec;
    spec.argv = command(job, work);
    spec.directory = work;
    // The compiler's own temporary files go where they are removed with the rest even if all of us are killed.
    spec.environment = {{"TMPDIR", folder}, {"LC_ALL", "C"}};
    spec.time_limit = job.time_limit;
    const auto outcome = run_process(spec);
    if (!outcome) return CompileFault{false, outcome.error().message};

    const std::string path = fmt::format("{}/{}{}", work, kObject, job.request.suffix);
    // In a program that collects all child processes the exit code is lost; the file then speaks for itself.
    if (!outcome->succeeded() && !outcome->unknown) return refused(job, work, *outcome);
    const auto object = read_file(path);
    if (!object || !is_whole(*object)) return refused(job, work, *outcome);

    Manifest manifest = describe(job, *object);
    const auto status = write_file(work + "/entry/manifest.json", manifest_json(manifest).dump(2) + "\n");
    if (!status) return CompileFault{true, status.error().message};
    return manifest;
}

}  // namespace tilewise
