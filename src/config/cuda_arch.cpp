// SPDX-License-Identifier: MIT
#include "config/cuda_arch.hpp"

#include "base/text.hpp"
#include "config/backend.hpp"

namespace tilewise {

std::optional<CudaArch> parse_cuda_arch(std::string_view name) {
    constexpr std::string_view kPrefix = facts_of(Backend::cuda).arch_prefix;
    constexpr std::int64_t kLeast = 10, kMost = 9999;  // two digits at least: the last is the minor version
    if (!name.starts_with(kPrefix)) return std::nullopt;
    name.remove_prefix(kPrefix.size());
    const bool one_chip = name.ends_with('a');
    if (one_chip) name.remove_suffix(1);
    const auto number = parse_integer(name);
    if (!number || *number < kLeast || *number > kMost) return std::nullopt;
    return CudaArch{static_cast<int>(*number / 10), static_cast<int>(*number % 10), one_chip};
}

}  // namespace tilewise
