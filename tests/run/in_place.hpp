// SPDX-License-Identifier: MIT
// The one operand that may be the output itself: a D tensor.
#pragma once

#include "base/result.hpp"
#include "device/device.hpp"
#include "measure/tensors.hpp"
#include "run/executable.hpp"

namespace tilewise {

inline bool can_be_in_place(const Problem& problem) { return d_count(problem) > 0 && !problem.beta; }

// The operands with the first D tensor in C. The two buffers are alike, gaps and guards included.
inline Result<Operands> in_place(Device& device, const Tensors& tensors, Operands operands) {
    constexpr std::size_t kC = 2;
    const auto bytes = static_cast<std::size_t>(tensors.buffers()[kC]->bytes());
    if (auto status = device.copy(operands.c, operands.d[0], bytes, kDefaultStream); !status) return status.error();
    operands.d[0] = operands.c;
    return operands;
}

}  // namespace tilewise
