// SPDX-License-Identifier: MIT
// A product of fp32 matrices in three loops, without epilogues.
#pragma once
#include "../../common/args.hpp"
#include "../types.hpp"

namespace tilewise::cpu::toy_gemm {

inline const float& element(const KernelMatrix& matrix, Index batch, Index i, Index j) {
    return static_cast<const float*>(
        matrix.data)[batch * matrix.batch_stride + i * matrix.row_stride + j * matrix.col_stride];
}

inline void run(const KernelArgs* args, const KernelPart* part, void*) {
    for (Index p = part->batch_begin; p < part->batch_end; ++p) {
        for (Index i = part->m_begin; i < part->m_end; ++i) {
            for (Index j = part->n_begin; j < part->n_end; ++j) {
                float sum = 0;
                for (Index k = 0; k < args->k; ++k) sum += element(args->a, p, i, k) * element(args->b, p, k, j);
                const_cast<float&>(element(args->c, p, i, j)) = args->alpha * sum;
            }
        }
    }
}

inline Index scratch_bytes(const KernelArgs*) { return 0; }

}  // namespace tilewise::cpu::toy_gemm

#define TILEWISE_CPU_TOY_GEMM(Config)                                                                   \
    extern "C" __attribute__((visibility("default"))) const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL; \
    const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL = {tilewise::kKernelAbi,                           \
                                                        tilewise::cpu::toy_gemm::scratch_bytes,         \
                                                        tilewise::cpu::toy_gemm::run,                   \
                                                        nullptr,                                        \
                                                        nullptr,                                        \
                                                        nullptr,                                        \
                                                        nullptr,                                        \
                                                        nullptr};
