// SPDX-License-Identifier: MIT
#include "build/try_compiler.hpp"

#include <string>
#include <variant>

#include "base/files.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"
#include "build/gpu_request.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {

Status try_compiler(const Toolchain& toolchain, const ArchSpec& arch, const BuildSettings& settings) {
    const std::string suffix(code_of(arch.backend).suffix);
    const BuildRequest request =
        arch.is_gpu() ? gpu_request(arch, suffix, "stub", "extern \"C\" __global__ void tilewise_kernel() {}\n")
                      : BuildRequest{"stub", "extern \"C\" void stub() {}\n", {}, arch.name, suffix};
    const auto dir = PrivateDir::create(settings.temp_dir, "tilewise-stub-");
    if (!dir) return dir.error();
    const auto outcome = compile_kernel({request, "", toolchain, settings.compile_limit}, dir->inside());
    const auto* fault = std::get_if<CompileFault>(&outcome);
    return fault ? Status(toolchain_error(fault->message)) : Status();
}

}  // namespace tilewise
