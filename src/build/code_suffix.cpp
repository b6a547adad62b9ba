// SPDX-License-Identifier: MIT
#include "build/code_suffix.hpp"

#include <array>

#include "config/cuda_arch.hpp"

namespace tilewise {
namespace {

bool has_later_chips(std::string_view arch) {
    const auto cuda = parse_cuda_arch(arch);
    return cuda && !cuda->one_chip;
}

constexpr std::array<BackendCode, kAllBackends.size()> kBackendCode = {{
    {kSharedObject},                  // cpu
    {kCubin, kPtx, has_later_chips},  // cuda
    {kHsaco},                         // hip
}};

}  // namespace

const BackendCode& code_of(Backend backend) { return kBackendCode[static_cast<std::size_t>(backend)]; }

std::vector<std::string_view> code_suffixes(const ArchSpec& arch) {
    const BackendCode& code = code_of(arch.backend);
    if (code.is_portable && code.is_portable(arch.name)) return {code.suffix, code.portable};
    return {code.suffix};
}

}  // namespace tilewise
