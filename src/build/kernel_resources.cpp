// SPDX-License-Identifier: MIT
#include "build/kernel_resources.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tilewise {
namespace {

// The number that stands before `unit` in "Used 40 registers, 512 bytes smem"; 0 when that is not there.
std::int64_t amount(std::string_view line, std::string_view unit) {
    const std::size_t end = line.find(unit);
    if (end == std::string_view::npos) return 0;
    const std::string_view before = line.substr(0, end);
    const std::size_t start = before.find_last_not_of("0123456789");
    return parse_integer(before.substr(start == std::string_view::npos ? 0 : start + 1)).value_or(0);
}

}  // namespace

std::optional<KernelResources> resources_from_log(std::string_view log) {
    KernelResources most;
    for (const std::string_view line : split(log, '\n')) {
        most.registers = std::max(most.registers, amount(line, " registers"));
        most.shared_bytes = std::max(most.shared_bytes, amount(line, " bytes smem"));
        most.local_bytes = std::max(most.local_bytes, amount(line, " bytes stack frame"));
    }
    // No kernel does without registers.
    return most.registers > 0 ? std::optional(most) : std::nullopt;
}

}  // namespace tilewise
