// SPDX-License-Identifier: MIT
// How a kernel computes: its family, the instruction, which operand fills its rows, and how the reduction is shared out. An error of a
// model concerns a whole kind; of two kernels of one kind it knows better which is faster.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/family_id.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

struct KernelKind {
    FamilyId family = FamilyId::blocked_gemm;
    int rows = 0;  // of the instruction
    bool swap = false, cluster = false, split = false, stream = false;

    bool operator==(const KernelKind&) const = default;
};

KernelKind kind_of(const KernelConfig& config);
std::string print_kind(const KernelKind& kind);  // "wgmma_gemm m64 swap split"
std::optional<KernelKind> parse_kind(std::string_view text);

}  // namespace tilewise
