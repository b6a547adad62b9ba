// SPDX-License-Identifier: MIT
// Kernels that ask a GPU what its matrix and copy instructions really do, and write the answers as tables of small numbers
// to C: which element a register gets, where in shared memory an element lies. Run by tests/gpu/probe_test.cpp; the tables
// are kept in tests/golden/cuda, for tests and for emulation without a GPU.
//
// The numbers of rows, columns and k are a convention between the operands of a product, which no experiment can see. Each
// probe says which few places it takes them from; all the others are found out. Values are whole numbers that 16-bit
// elements hold exactly. One block a probe.
#pragma once
#include "probes_copy.hpp"
#include "probes_mma.hpp"
#include "probes_wgmma.hpp"

// A probe is a type with run(args) or, if it copies tensors, run(args, map of A, map of B).
#define TILEWISE_CUDA_PROBE(...)                                                    \
    extern "C" __global__ void __launch_bounds__(128, 1)                            \
        TILEWISE_KERNEL_SYMBOL(const __grid_constant__ tilewise::KernelArgs args) { \
        tilewise::gpu::griddep_wait();                                              \
        __VA_ARGS__::run(args);                                                     \
    }
#define TILEWISE_CUDA_TENSOR_PROBE(...)                                                                             \
    extern "C" __global__ void __launch_bounds__(128, 1) TILEWISE_KERNEL_SYMBOL(                                    \
        const __grid_constant__ tilewise::KernelArgs args, const __grid_constant__ tilewise::cuda::TensorMap a,     \
        const __grid_constant__ tilewise::cuda::TensorMap b, const __grid_constant__ tilewise::cuda::TensorMap c) { \
        tilewise::gpu::griddep_wait();                                                                              \
        __VA_ARGS__::run(args, a, b);                                                                               \
    }
