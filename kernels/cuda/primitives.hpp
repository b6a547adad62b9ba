// SPDX-License-Identifier: MIT
// What GPU kernels ask of the machine, one thin function per instruction, for CUDA: first what every GPU has (tilewise::gpu), which the
// headers of kernels/gpu call, then NVIDIA's own (tilewise::cuda). A kernel's source includes this before them. All inline assembly and
// all built-in variables are in this file and in hopper.hpp, so that host twins of them (kernels/emulate) can run the same kernels
// without a GPU.
#pragma once
#include "../gpu/small_float.hpp"

#if defined(__CUDACC__)

#define TILEWISE_HAS_CONVERSIONS  // gpu/conversions.hpp
#if __CUDA_ARCH__ >= 890
#define TILEWISE_HAS_8BIT_CONVERSIONS
#endif

namespace tilewise::gpu {

TILEWISE_DEVICE float fp16_to_float(u16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
TILEWISE_DEVICE u16 float_to_fp16(float x) {
    u16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
TILEWISE_DEVICE u16 float_to_bf16(float x) {
    u16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
TILEWISE_DEVICE u32 floats_to_fp16(float first, float second) {
    u32 packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
    return packed;
}
TILEWISE_DEVICE u32 floats_to_bf16(float first, float second) {
    u32 packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
    return packed;
}
TILEWISE_DEVICE float exp2_of(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
TILEWISE_DEVICE float reciprocal_of(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
TILEWISE_DEVICE int add_products(int sum, u32 a, u32 b) { return __dp4a(int(a), int(b), sum); }
TILEWISE_DEVICE u32 gather_bytes(const u32 (&words)[4], int index) {
    const u32 pick = u32(index) | u32(index + 4) << 4;
    return __byte_perm(__byte_perm(words[0], words[1], pick), __byte_perm(words[2], words[3], pick), 0x5410);
}

#if defined(TILEWISE_HAS_8BIT_CONVERSIONS)
// Pairs become fp16, which has them all, in one instruction.
TILEWISE_DEVICE void fp8_to_floats(u32 word, float (&x)[4]) {
    TILEWISE_UNROLL
    for (int i = 0; i < 4; i += 2) {
        u32 halves;
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(u16(word >> (8 * i))));
        x[i] = fp16_to_float(u16(halves)), x[i + 1] = fp16_to_float(u16(halves >> 16));
    }
}
TILEWISE_DEVICE void bf8_to_floats(u32 word, float (&x)[4]) {
    TILEWISE_UNROLL
    for (int i = 0; i < 4; i += 2) {
        u32 halves;
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(u16(word >> (8 * i))));
        x[i] = fp16_to_float(u16(halves)), x[i + 1] = fp16_to_float(u16(halves >> 16));
    }
}
TILEWISE_DEVICE u16 floats_to_fp8(float first, float second) {
    u16 packed;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(second), "f"(first));
    return packed;
}
TILEWISE_DEVICE u16 floats_to_bf8(float first, float second) {
    u16 packed;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(second), "f"(first));
    return packed;
}
#endif

}  // namespace tilewise::gpu

#endif  // __CUDACC__

#include "../gpu/packet.hpp"

namespace tilewise::cuda {
using namespace gpu;
}  // namespace tilewise::cuda

#if !defined(TILEWISE_EMULATED)  // then kernels/emulate/primitives.hpp is here already

namespace tilewise::gpu {

inline constexpr int kArchLanes = 32;  // of a warp

// ---- Threads, blocks and shared memory ----

TILEWISE_DEVICE int thread_index() { return int(threadIdx.x); }
TILEWISE_DEVICE int lane_index() { return int(threadIdx.x) & 31; }
TILEWISE_DEVICE u32 block_index() { return blockIdx.x; }
TILEWISE_DEVICE u32 block_count() { return gridDim.x; }
TILEWISE_DEVICE int block_threads() { return int(blockDim.x); }
// The same in all threads of a warp, and known to be so.
TILEWISE_DEVICE int warp_index() { return __shfl_sync(0xffffffffu, int(threadIdx.x) >> 5, 0); }
// A number that all threads of a warp have anyway, from then on known to be so: branches on it do not part them.
TILEWISE_DEVICE int uniform(int x) { return __shfl_sync(0xffffffffu, x, 0); }

// Gives what the lane has whose index differs in the bits of `mask`. All lanes of a warp call it together.
TILEWISE_DEVICE u32 from_lane(u32 x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
TILEWISE_DEVICE float exchange(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }

TILEWISE_DEVICE void sync_block() { __syncthreads(); }
TILEWISE_DEVICE void sync_warp() { __syncwarp(0xffffffffu); }

// The block's dynamic shared memory; swizzled tiles need its start on a multiple of 1024 bytes.
TILEWISE_DEVICE SharedAddress shared_start() {
    extern __shared__ __align__(1024) u8 tilewise_shared[];
    return SharedAddress(__cvta_generic_to_shared(tilewise_shared));
}

// A kernel's arguments, which functions that are called may have too.
template <class Args>
TILEWISE_DEVICE const Args& in_place(const Args& args) {
    return args;
}

// ---- Programmatic dependent launch: a kernel starts while the one before it ends (sm_90 and later) ----

// Until the kernels before this one have finished and their results can be seen. Before any access to memory.
TILEWISE_DEVICE void griddep_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The kernel after this one may start to take free places.
TILEWISE_DEVICE void griddep_launch() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The 128 bytes around an address (a multiple of 4) to the L2 cache, where they are kept up to date whoever writes them: so this may
// come before griddep_wait. The word itself is thrown away.
TILEWISE_DEVICE void prefetch_line(const void* at) {
    u32 word;
    asm volatile("ld.global.cg.L2::128B.u32 %0, [%1];" : "=r"(word) : "l"(at));
}

// The same as a hint, for memory that this kernel reads later.
TILEWISE_DEVICE void prefetch_l2(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// ---- Plain accesses of 1 to 16 bytes; the address is a multiple of the size ----

template <int bytes>
TILEWISE_DEVICE Packet<bytes> load_global(const void* from) {
    Packet<bytes> p;
    if constexpr (bytes == 16) {
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(p.words[0]), "=r"(p.words[1]), "=r"(p.words[2]), "=r"(p.words[3])
                     : "l"(from));
    } else if constexpr (bytes == 8) {
        asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(p.words[0]), "=r"(p.words[1]) : "l"(from));
    } else if constexpr (bytes == 4) {
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(p.words[0]) : "l"(from));
    } else if constexpr (bytes == 2) {
        asm volatile("ld.global.u16 %0, [%1];" : "=h"(p.value) : "l"(from));
    } else {
        p.value = *static_cast<const u8*>(from);
    }
    return p;
}

template <int bytes>
TILEWISE_DEVICE void store_global(void* to, const Packet<bytes>& p) {
    if constexpr (bytes == 16) {
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(p.words[0]), "r"(p.words[1]),
                     "r"(p.words[2]), "r"(p.words[3])
                     : "memory");
    } else if constexpr (bytes == 8) {
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(p.words[0]), "r"(p.words[1]) : "memory");
    } else if constexpr (bytes == 4) {
        asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(p.words[0]) : "memory");
    } else if constexpr (bytes == 2) {
        asm volatile("st.global.u16 [%0], %1;" ::"l"(to), "h"(p.value) : "memory");
    } else {
        *static_cast<u8*>(to) = p.value;
    }
}

// ---- Between blocks: words that say that what was written before them can be read ----

// Sees all that was written before the word it reads was released; the caller's block, too, after its next barrier.
TILEWISE_DEVICE u64 load_acquire(const u64* from) {
    u64 value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}
// Nothing to do: a release is also for what other threads of the block wrote before a barrier.
TILEWISE_DEVICE void publish() {}
TILEWISE_DEVICE void store_release(u64* to, u64 value) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
TILEWISE_DEVICE void add_release(u64* to, u64 value) {
    asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
// Four neighbours at once, each addition indivisible; the order among blocks is open.
TILEWISE_DEVICE void add_global(float* to, const float (&x)[4]) {
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
                 : "memory");
#else
    TILEWISE_UNROLL
    for (int i = 0; i < 4; ++i) asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to + i), "f"(x[i]) : "memory");
#endif
}
TILEWISE_DEVICE void add_global(int* to, const int (&x)[4]) {
    TILEWISE_UNROLL
    for (int i = 0; i < 4; ++i) asm volatile("red.global.add.s32 [%0], %1;" ::"l"(to + i), "r"(x[i]) : "memory");
}

template <int bytes>
TILEWISE_DEVICE void store_shared(SharedAddress to, const Packet<bytes>& p) {
    if constexpr (bytes == 16) {
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(p.words[0]), "r"(p.words[1]),
                     "r"(p.words[2]), "r"(p.words[3])
                     : "memory");
    } else if constexpr (bytes == 8) {
        asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(p.words[0]), "r"(p.words[1]) : "memory");
    } else if constexpr (bytes == 4) {
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(p.words[0]) : "memory");
    } else if constexpr (bytes == 2) {
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(p.value) : "memory");
    } else {
        asm volatile("st.shared.u8 [%0], %1;" ::"r"(to), "r"(u32(p.value)) : "memory");
    }
}

template <int bytes>
TILEWISE_DEVICE Packet<bytes> load_shared(SharedAddress from) {
    static_assert(bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16);
    Packet<bytes> p;
    if constexpr (bytes == 16) {
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(p.words[0]), "=r"(p.words[1]), "=r"(p.words[2]), "=r"(p.words[3])
                     : "r"(from)
                     : "memory");
    } else if constexpr (bytes == 8) {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(p.words[0]), "=r"(p.words[1]) : "r"(from) : "memory");
    } else if constexpr (bytes == 2) {
        asm volatile("ld.shared.u16 %0, [%1];" : "=h"(p.value) : "r"(from) : "memory");
    } else {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(p.words[0]) : "r"(from) : "memory");
    }
    return p;
}

// One, two or four fp32 of shared memory.
TILEWISE_DEVICE float load_shared_float(SharedAddress from) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
    return x;
}
TILEWISE_DEVICE void load_shared_float2(SharedAddress from, float& x, float& y) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(from) : "memory");
}
TILEWISE_DEVICE void load_shared_float4(SharedAddress from, float (&x)[4]) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                 : "r"(from)
                 : "memory");
}
TILEWISE_DEVICE void store_shared_float(SharedAddress to, float x) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}
TILEWISE_DEVICE void store_shared_float2(SharedAddress to, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}

// The same address, but the compiler does not know: it derives no other way to count with it. (ptxas 13.0 loses track of one of
// two counts of the same loop where registers are short.)
TILEWISE_DEVICE void hide(SharedAddress& address) { asm volatile("" : "+r"(address)); }

// ---- Asynchronous copies, cp.async (sm_80 and later) ----

// `bytes` (4, 8 or 16) of global memory into shared memory; of these the first `valid` are read, the rest are zero.
template <int bytes>
TILEWISE_DEVICE void copy_async(SharedAddress to, const void* from, int valid) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16);
    if constexpr (bytes == 16) {  // past the L1 cache: nothing is read twice by one block
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(bytes), "r"(valid)
                     : "memory");
    }
}
TILEWISE_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most `pending` of this thread's committed groups are under way.
template <int pending>
TILEWISE_DEVICE void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace tilewise::gpu

namespace tilewise::cuda {

// ---- Matrices of 8 x 8 16-bit elements (ldmatrix, stmatrix) and mma.sync ----
// Lane l gives the address of row l % 8 of matrix l / 8, and gets (or gives) elements (l / 4, 2 (l % 4)) and the one
// after it of each matrix; `trans` gets the matrices transposed.

template <bool trans>
TILEWISE_DEVICE void load_matrices(SharedAddress row, u32 (&to)[4]) {
    if constexpr (trans) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(row)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(row)
                     : "memory");
    }
}
template <bool trans>
TILEWISE_DEVICE void load_matrices(SharedAddress row, u32 (&to)[2]) {  // lanes 0 to 15 give addresses
    if constexpr (trans) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(to[0]), "=r"(to[1])
                     : "r"(row)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(to[0]), "=r"(to[1])
                     : "r"(row)
                     : "memory");
    }
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
TILEWISE_DEVICE void store_matrices(SharedAddress row, const u32 (&from)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(from[0]),
                 "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
}
#endif

// sum(16 x 8) += a(16 x depth) * b(depth x 8), depth being 32 bytes of elements; fp32 operands are tf32. fp8 and bf8 from sm_89 on.
#define TW_MMA(TYPES, K)                                                                                           \
    asm volatile("mma.sync.aligned.m16n8" TYPES " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+" K(sum[0]), "+" K(sum[1]), "+" K(sum[2]), "+" K(sum[3])                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
template <class A, class B>
TILEWISE_DEVICE void multiply_add(SumOf<A> (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    static_assert(kSame<A, B> || (kIs8BitFloat<A> && kIs8BitFloat<B>), "types that the matrix unit multiplies");
    if constexpr (kSame<A, Fp16>) {
        TW_MMA("k16.row.col.f32.f16.f16.f32", "f");
    } else if constexpr (kSame<A, Bf16>) {
        TW_MMA("k16.row.col.f32.bf16.bf16.f32", "f");
    } else if constexpr (kSame<A, Int8>) {
        TW_MMA("k32.row.col.s32.s8.s8.s32", "r");
    } else if constexpr (kSame<A, Fp32>) {
        TW_MMA("k8.row.col.f32.tf32.tf32.f32", "f");
    } else if constexpr (kSame<A, Fp8> && kSame<B, Fp8>) {
        TW_MMA("k32.row.col.f32.e4m3.e4m3.f32", "f");
    } else if constexpr (kSame<A, Fp8>) {
        TW_MMA("k32.row.col.f32.e4m3.e5m2.f32", "f");
    } else if constexpr (kSame<B, Fp8>) {
        TW_MMA("k32.row.col.f32.e5m2.e4m3.f32", "f");
    } else {
        TW_MMA("k32.row.col.f32.e5m2.e5m2.f32", "f");
    }
}
// The same with half the depth, 16 bytes, of 16-bit elements: rows 0 to 7 of a in one register, 8 to 15 in the other.
template <class T>
TILEWISE_DEVICE void multiply_add_half(float (&sum)[4], const u32 (&a)[2], u32 b) {
#define TW_HALF_MMA(TYPES)                                                  \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." TYPES              \
                 ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])   \
                 : "r"(a[0]), "r"(a[1]), "r"(b))
    if constexpr (kSame<T, Fp16>) {
        TW_HALF_MMA("f16.f16");
    } else {
        static_assert(kSame<T, Bf16>);
        TW_HALF_MMA("bf16.bf16");
    }
#undef TW_HALF_MMA
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// sum(16 x 8) += a(16 x 16) * b(16 x 8) in fp64. Lane l has of a rows l / 4 and l / 4 + 8 at k = l % 4, then both four further on,
// and so on; of b column l / 4 at the same k; of the sum what the others have.
TILEWISE_DEVICE void multiply_add_fp64(double (&sum)[4], const double (&a)[8], const double (&b)[4]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, "
        "{%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]),
          "d"(b[2]), "d"(b[3]));
}
#endif
// fp32 with the mantissa of tf32, to nearest.
TILEWISE_DEVICE u32 round_tf32(u32 x) {
    u32 rounded = 0;
    asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "r"(x));
    return rounded;
}

}  // namespace tilewise::cuda

#endif  // TILEWISE_EMULATED
