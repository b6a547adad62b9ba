// SPDX-License-Identifier: MIT
// CPU kernels: the host's compiler, run as a process of its own.
#include <fmt/core.h>

#include "base/files.hpp"
#include "base/process.hpp"
#include "build/compile.hpp"

namespace tilewise {
namespace {

std::string how_it_ended(const ProcessOutcome& outcome, std::chrono::milliseconds limit) {
    if (outcome.timed_out) {
        return fmt::format("it took longer than {} s (TILEWISE_COMPILE_TIMEOUT_S)",
                           std::chrono::duration<double>(limit).count());
    }
    if (outcome.signal != 0) return fmt::format("the compiler was ended by signal {}", outcome.signal);
    if (outcome.exit_code != 0) return fmt::format("the compiler ended with code {}", outcome.exit_code);
    return {};
}

// Its paths are relative, so that nothing of where it ran gets into the kernel and it can be run again by hand; the
// prefix map does the same for what debug flags would add.
std::vector<std::string> host_command(const CompileJob& job, const std::string& work) {
    std::vector<std::string> argv = {job.toolchain.path};
    for (const std::string_view flag : fixed_flags(job.request.suffix)) argv.emplace_back(flag);
    argv.insert(argv.end(), job.request.flags.begin(), job.request.flags.end());
    argv.push_back(fmt::format("-ffile-prefix-map={}=.", shown(work)));
    argv.insert(argv.end(),
                {"-I", "include", std::string(kSourceFile), "-o", object_file(job.request), "-lm", "-lc", "-lgcc"});
    return argv;
}

Result<CompilerRun> run_host_compiler(const CompileJob& job, const std::string& work) {
    ProcessSpec spec;
    spec.argv = host_command(job, work);
    spec.directory = work;
    // The compiler's own temporary files go where they are removed with the rest even if all of us are killed: beside
    // `work`, said so that nobody can lead it elsewhere.
    spec.environment = {{"TMPDIR", ".."}, {"LC_ALL", "C"}};
    spec.time_limit = job.time_limit;
    auto outcome = run_process(spec);
    if (!outcome) return outcome.error();
    CompilerRun run;
    // In a program that collects all child processes the exit code is lost; the file then speaks for itself.
    if (!outcome->succeeded() && !outcome->unknown) run.failure = how_it_ended(*outcome, job.time_limit);
    run.log = std::move(outcome->output);
    return run;
}

}  // namespace

constinit const Compiler kHostCompiler = {
    .name = "compiler",
    .way_out = "Install a compiler (Debian, Ubuntu: apt install g++) or name one with TILEWISE_CXX",
    .reads_headers = true,
    .find = [](const BuildSettings& settings, std::string_view) { return find_host_compiler(settings.compiler); },
    .command = host_command,
    .run = run_host_compiler,
};

}  // namespace tilewise
