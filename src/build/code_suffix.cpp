// SPDX-License-Identifier: MIT
#include "build/code_suffix.hpp"

#include "config/cuda_arch.hpp"

namespace tilewise {

std::vector<std::string_view> code_suffixes(const ArchSpec& arch) {
    if (arch.backend == Backend::cpu) return {kSharedObject};
    const auto cuda = parse_cuda_arch(arch.name);
    if (cuda && !cuda->one_chip) return {kCubin, kPtx};
    return {kCubin};
}

}  // namespace tilewise
