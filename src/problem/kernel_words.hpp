// SPDX-License-Identifier: MIT
// The words of problems in those of kernels (kernels/common), which know no header of ours.
#pragma once

#include "kernels/common/args.hpp"
#include "kernels/common/element.hpp"
#include "problem/problem.hpp"

namespace tilewise {

constexpr KernelDType kernel_dtype(DType type) { return static_cast<KernelDType>(type); }
constexpr KernelScale kernel_scale(Scale scale) { return static_cast<KernelScale>(scale); }
// The kernels' lists begin with none.
constexpr KernelEpilogueOp kernel_op(EpilogueOp op) { return static_cast<KernelEpilogueOp>(static_cast<int>(op) + 1); }

static_assert(kernel_dtype(DType::int32) == KernelDType::int32 && kernel_scale(Scale::row) == KernelScale::row);
static_assert(kernel_op(EpilogueOp::bias) == KernelEpilogueOp::bias &&
              kernel_op(EpilogueOp::mul) == KernelEpilogueOp::mul);
static_assert(kMaxKernelEpilogueOps == kMaxEpilogueOps && kMaxKernelDTensors == kMaxDTensors);

}  // namespace tilewise
