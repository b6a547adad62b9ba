// SPDX-License-Identifier: MIT
// Lets tests call the functions of the CUDA kernels that work out where things go, without a GPU: the instructions they end
// in are replaced by ones that write down what they were asked to do; all the others do nothing. Everything is in a namespace
// of its own (tilewise::cuda_recorded, and gpu_recorded for what every GPU has), since the names mean other things elsewhere.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "kernels/common/args.hpp"

// The CUDA compiler knows these by itself.
struct CudaIndex {
    unsigned x;
};
inline thread_local CudaIndex threadIdx, blockIdx, gridDim, blockDim;
#define __shared__
#define __align__(bytes)
#define __grid_constant__
inline int __shfl_sync(unsigned, int value, int) { return value; }  // of values that all lanes have
float __shfl_xor_sync(unsigned, float, int);
void __syncthreads();
void __syncwarp(unsigned);
unsigned long long __cvta_generic_to_shared(const void*);

#define cuda cuda_recorded
#define gpu gpu_recorded
// The instructions themselves keep another name, and no body: host compilers need not understand PTX's operands.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wuninitialized"
#define asm
#define volatile(...) static_cast<void>(0)
#define load_matrices asm_load_matrices
#define store_matrices asm_store_matrices
#define store_shared_float2 asm_store_shared_float2
#define load_global asm_load_global
#define store_shared asm_store_shared
#define copy_async asm_copy_async
#define load_shared_float4 asm_load_shared_float4
#define copy_box asm_copy_box
#define store_box asm_store_box
#define store_commit asm_store_commit
#define store_wait_read asm_store_wait_read
#define async_proxy_fence asm_async_proxy_fence
#define named_sync asm_named_sync
#define wgmma asm_wgmma
#include "kernels/cuda/hopper.hpp"
#undef asm
#undef volatile
#pragma GCC diagnostic pop
#undef load_matrices
#undef store_matrices
#undef store_shared_float2
#undef load_global
#undef store_shared
#undef copy_async
#undef load_shared_float4
#undef copy_box
#undef store_box
#undef store_commit
#undef store_wait_read
#undef async_proxy_fence
#undef named_sync
#undef wgmma

namespace tilewise::gpu {

struct Recorded {
    struct Matrices {
        u32 row;  // the address the lane gives
        u32 words[4];
    };
    struct Box {
        u32 shared;
        int x, y;
    };
    struct Product {
        u64 a, b;  // descriptors
    };
    u32 matrix_row = 0;           // the address the lane gave to load_matrices last
    bool transposed = false;      // and how
    std::map<u32, float> floats;  // by address
    std::map<u32, u32> words;     // likewise: what store_shared and copy_async put
    u32 fetched = 0;              // the address that load_shared_float4 was given last
    std::vector<Matrices> stored;
    std::vector<Box> copied_in, copied_out;
    std::vector<Product> products;
};
inline Recorded recorded;

inline void store_shared_float2(SharedAddress to, float x, float y) {
    recorded.floats[to] = x;
    recorded.floats[to + 4] = y;
}
template <int bytes>
Packet<bytes> load_global(const void* from) {
    Packet<bytes> packet;
    std::memcpy(&packet, from, bytes);
    return packet;
}
template <int bytes>
void store_shared(SharedAddress to, const Packet<bytes>& packet) {
    if constexpr (bytes % 4 == 0) {
        for (u32 i = 0; i < bytes / 4; ++i) recorded.words[to + 4 * i] = packet.words[i];
    }
}
template <int bytes>
void copy_async(SharedAddress to, const void* from, int valid) {
    char data[bytes] = {};
    std::memcpy(data, from, static_cast<std::size_t>(valid));
    Packet<bytes> packet;
    std::memcpy(&packet, data, bytes);
    store_shared<bytes>(to, packet);
}
inline void load_shared_float4(SharedAddress from, float (&)[4]) { recorded.fetched = from; }

}  // namespace tilewise::gpu

namespace tilewise::cuda {

template <bool trans>
void load_matrices(SharedAddress row, u32 (&)[4]) {
    recorded.matrix_row = row;
    recorded.transposed = trans;
}
inline void store_matrices(SharedAddress row, const u32 (&from)[4]) {
    recorded.stored.push_back({row, {from[0], from[1], from[2], from[3]}});
}
inline void copy_box(unsigned to, const TensorMap&, unsigned, int x, int y, int, unsigned long long) {
    recorded.copied_in.push_back({to, x, y});
}
inline void store_box(const TensorMap&, unsigned from, int x, int y, int) {
    recorded.copied_out.push_back({from, x, y});
}
inline void store_commit() {}
template <int groups>
void store_wait_read() {}
inline void async_proxy_fence() {}
inline void named_sync(int, int) {}
template <class A, class B, int n, int trans_a, int trans_b>
void wgmma(SumOf<A> (&)[n / 2], u64 a, u64 b, bool) {
    recorded.products.push_back({a, b});
}

}  // namespace tilewise::cuda

#include "kernels/cuda/mma_core.hpp"
#include "kernels/cuda/wgmma_gemm/wgmma_gemm.hpp"
#include "kernels/gpu/simt_core.hpp"

namespace tilewise::cuda {
using namespace wgmma_gemm;
}  // namespace tilewise::cuda
#undef cuda
#undef gpu
