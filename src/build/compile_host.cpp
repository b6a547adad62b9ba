// SPDX-License-Identifier: MIT
// CPU kernels: the host's compiler, run as a process of its own.
#include <fmt/core.h>

#include "base/files.hpp"
#include "base/process.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"

namespace tilewise {
namespace {

// Its paths are relative, so that nothing of where it ran gets into the kernel and it can be run again by hand; the
// prefix map does the same for what debug flags would add.
std::vector<std::string> host_command(const CompileJob& job, const std::string& work) {
    std::vector<std::string> argv = {job.toolchain.path};
    for (const std::string_view flag : fixed_flags(job.request.suffix)) argv.emplace_back(flag);
    if (job.request.suffix == kExtension) {  // the libraries among its flags come after what needs them
        argv.insert(argv.end(), {std::string(kSourceFile), "-o", object_file(job.request)});
        argv.insert(argv.end(), job.request.flags.begin(), job.request.flags.end());
        return argv;
    }
    argv.insert(argv.end(), job.request.flags.begin(), job.request.flags.end());
    argv.push_back(fmt::format("-ffile-prefix-map={}=.", shown(work)));
    argv.insert(argv.end(),
                {"-I", "include", std::string(kSourceFile), "-o", object_file(job.request), "-lm", "-lc", "-lgcc"});
    return argv;
}

Result<CompilerRun> run_host_compiler(const CompileJob& job, const std::string& work) {
    return run_program(host_command(job, work), job, work);
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
