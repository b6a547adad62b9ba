// SPDX-License-Identifier: MIT
// Tries configs and tiles of forward of first layers (kernels/cuda/halo_first.hpp), beside a plain sum:
//   nvcc -std=c++20 -arch=sm_90a --expt-relaxed-constexpr -I. benchmarks/halo_first_tuning.cu -o first && ./first
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/halo_first.hpp"
using namespace tilewise;
using namespace tilewise::cuda;

template <int M, int N, int W, int P>
struct Choice {
    using A = Bf16;
    using B = Bf16;
    using Out = Bf16;
    static constexpr int tile_m = M, tile_n = N, wave_m = W, wave_n = 1, threads = 32 * W, vector_c = 8, merge = 1,
                         blocks_per_unit = P;
};
template <class C>
__global__ void __launch_bounds__(C::threads, C::blocks_per_unit) kernel(const __grid_constant__ KernelArgs args) {
    HaloFirst<C>(args).work();
}
__global__ void fill(u16* p, long long n, u32 seed) {
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        u32 h = u32(i) * 2654435761u ^ seed;
        h ^= h >> 15, h *= 2246822519u, h ^= h >> 13;
        p[i] = Bf16::from_float((h & 65535) / 32768.f - 1);
    }
}
// Every 997th output.
__global__ void compare(KernelArgs a, int* wrong) {
    const auto& v = a.conv;
    const long long at = (blockIdx.x * 256ll + threadIdx.x) * 997;
    if (at >= v.images * v.y.image_stride) return;
    const int k = at % v.k, w = at / v.k % v.out[2], h = at / v.k / v.out[2] % v.out[1], n = at / v.y.image_stride;
    float sum = 0, size = 0;
    for (int r = 0; r < v.filter[1]; ++r) {
        for (int s = 0; s < v.filter[2]; ++s) {
            const int y = h * v.stride[1] + r - v.pad[1], x = w * v.stride[2] + s - v.pad[2];
            if (y < 0 || x < 0 || y >= v.in[1] || x >= v.in[2]) continue;
            for (int c = 0; c < v.c; ++c) {
                const float product =
                    Bf16::to_float(((u16*)a.a.data)[n * v.x.image_stride + (y * v.in[2] + x) * v.c + c]) *
                    Bf16::to_float(((u16*)a.b.data)[((k * v.filter[1] + r) * v.filter[2] + s) * v.c + c]);
                sum += product, size += fabsf(product);
            }
        }
    }
    const float got = Bf16::to_float(((u16*)a.c.data)[at]);
    if (!(fabsf(got - sum) <= fabsf(sum) / 128 + size * 1e-5f)) atomicAdd(wrong, 1);
}

template <class C>
void run(const char* name, KernelArgs a, int* wrong) {
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    const KernelConv& v = a.conv;
    const int shared = (233472 / C::blocks_per_unit - 1024) / 1024 * 1024;
    cudaFuncSetAttribute(kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    for (int h : {1, 2, 4, 7, 8, 14, 16}) {
        for (int w : {8, 14, 16, 28, 32, 56, 112}) {
            if (h * w > C::tile_m || h * w * 4 < C::tile_m * 3) continue;
            auto launch =
                halo_first_launch(v, {1, {1, h, w}}, {C::tile_m, C::tile_n, C::wave_m, C::tile_m / C::wave_m, 2, 2});
            if (launch.total_bytes > shared) continue;
            launch.blocks_per_slab = std::min(launch.tile_count(), 132 * C::blocks_per_unit / launch.column_tiles);
            std::memcpy(a.geometry, &launch, sizeof launch);
            const auto go = [&] {
                kernel<C><<<launch.blocks_per_slab * launch.column_tiles, C::threads, launch.total_bytes>>>(a);
            };
            cudaMemset(wrong, 0, 4), cudaMemset(a.c.data, 255, v.images * v.y.image_stride * 2);
            go();
            compare<<<v.images * v.y.image_stride / 997 / 256 + 1, 256>>>(a, wrong);
            int count = 0;
            cudaMemcpy(&count, wrong, 4, cudaMemcpyDeviceToHost);
            cudaEventRecord(begin);
            for (int i = 0; i < 10; ++i) go();
            cudaEventRecord(end), cudaEventSynchronize(end);
            float ms = 0;
            cudaEventElapsedTime(&ms, begin, end);
            std::printf("%7.1f us  %s tile %dx%d, %d bytes, %d wrong, %s\n", ms * 100, name, h, w, launch.total_bytes,
                        count, cudaGetErrorString(cudaGetLastError()));
        }
    }
}

int main() {
    KernelArgs a{};
    auto& v = a.conv;
    v = {64, 1, 3, 64, {1, 224, 224}, {1, 112, 112}, {1, 7, 7}, {1, 2, 2}, {1, 1, 1}, {0, 3, 3}, {}, {}};
    v.x = {224 * 224 * 3, 3, 3, 1}, v.y = {112 * 112 * 64, 64, 64, 1};
    u16 *x, *w, *y;
    int* wrong;
    cudaMalloc(&x, 64 * 224 * 224 * 3 * 2), cudaMalloc(&w, 64 * 147 * 2), cudaMalloc(&y, 64 * 112 * 112 * 64 * 2);
    cudaMalloc(&wrong, 4);
    fill<<<1024, 256>>>(x, 64 * 224 * 224 * 3, 1), fill<<<64, 256>>>(w, 64 * 147, 2);
    a.m = 64 * 112 * 112, a.n = 64, a.k = 147, a.batch = 1, a.alpha = 1, a.split_k = 1;
    a.a.data = x, a.b.data = w, a.c = {y, 64, 1, 64};
    run<Choice<256, 64, 4, 2>>("256x64 4 waves 2 blocks", a, wrong);
    run<Choice<128, 64, 4, 3>>("128x64 4 waves 3 blocks", a, wrong);
    run<Choice<256, 64, 8, 2>>("256x64 8 waves 2 blocks", a, wrong);
    run<Choice<128, 64, 4, 4>>("128x64 4 waves 4 blocks", a, wrong);
}
