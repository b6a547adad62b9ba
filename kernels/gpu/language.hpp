// SPDX-License-Identifier: MIT
// The words of kernels that a GPU's compiler and a host's spell differently, and short names of integers. Every header of this folder
// also compiles on a host, for tests and for emulation.
#pragma once

#if defined(__CUDACC__) || defined(__HIP__)
#define TILEWISE_ON_GPU
#define TILEWISE_DEVICE __device__ __forceinline__
#define TILEWISE_CALLED __device__ __noinline__  // code that is too long to repeat
#define TILEWISE_SHARED __shared__
#define TILEWISE_UNROLL _Pragma("unroll")      // registers are indexed by numbers known at compile time
#define TILEWISE_ROLLED _Pragma("unroll 1")    // keeps code small
#define TILEWISE_UNROLL_4 _Pragma("unroll 4")  // four of a loop of unknown length at a time
#else
#define TILEWISE_DEVICE inline
#define TILEWISE_CALLED inline
#define TILEWISE_SHARED static
#define TILEWISE_UNROLL
#define TILEWISE_ROLLED
#define TILEWISE_UNROLL_4
#endif

namespace tilewise::gpu {

using u8 = unsigned char;
using i8 = signed char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

}  // namespace tilewise::gpu
