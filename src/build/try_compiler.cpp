// SPDX-License-Identifier: MIT
#include "build/try_compiler.hpp"

#include <variant>

#include "base/files.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {

Status try_compiler(const Toolchain& toolchain, const ArchSpec& arch, const BuildSettings& settings) {
    BuildRequest request;
    request.name = "stub";
    request.source = arch.is_gpu() ? "extern \"C\" __global__ void stub() {}\n" : "extern \"C\" void stub() {}\n";
    request.arch = arch.name;
    request.suffix = code_of(arch.backend).suffix;
    const auto dir = PrivateDir::create(settings.temp_dir, "tilewise-stub-");
    if (!dir) return dir.error();
    const auto outcome = compile_kernel({request, "", toolchain, settings.compile_limit}, dir->inside());
    const auto* fault = std::get_if<CompileFault>(&outcome);
    return fault ? Status(toolchain_error(fault->message)) : Status();
}

}  // namespace tilewise
