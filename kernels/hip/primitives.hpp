// SPDX-License-Identifier: MIT
// What GPU kernels ask of the machine, one thin function per instruction, for HIP: first what every GPU has (tilewise::gpu), which the
// headers of kernels/gpu call, then AMD's own (tilewise::hip). A kernel's source includes this before them. All built-in functions of the
// compiler are in this file, so that host twins of them (kernels/emulate/hip.hpp) can run the same kernels without a GPU. No header of
// HIP is read, so its words are defined here.
#pragma once

#if defined(__HIP__)

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
// The second number, blocks of a unit, is left to the compiler: a unit has 512 registers for each lane.
#define TILEWISE_FIRST(first, ...) first
#define __launch_bounds__(...) __attribute__((amdgpu_flat_work_group_size(1, TILEWISE_FIRST(__VA_ARGS__, 1))))

// Functions are for the device without being marked so, since the same headers also run on the host.
#pragma clang force_cuda_host_device begin

#define TILEWISE_HAS_CONVERSIONS  // gpu/conversions.hpp

#endif  // __HIP__

#include "../gpu/small_float.hpp"

#if defined(__HIP__)

namespace tilewise::gpu {

TILEWISE_DEVICE float fp16_to_float(u16 x) { return float(__builtin_bit_cast(_Float16, x)); }
TILEWISE_DEVICE u16 float_to_fp16(float x) { return __builtin_bit_cast(u16, _Float16(x)); }
TILEWISE_DEVICE u16 float_to_bf16(float x) {
    const u32 raw = bits_of(x);
    const u32 rounded = (raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16;
    return x == x ? u16(rounded) : kGpuNan16;
}
TILEWISE_DEVICE u32 floats_to_fp16(float first, float second) {
    return u32(float_to_fp16(first)) | u32(float_to_fp16(second)) << 16;
}
TILEWISE_DEVICE u32 floats_to_bf16(float first, float second) {
    return u32(float_to_bf16(first)) | u32(float_to_bf16(second)) << 16;
}
TILEWISE_DEVICE float exp2_of(float x) { return __builtin_amdgcn_exp2f(x); }
TILEWISE_DEVICE float reciprocal_of(float x) { return __builtin_amdgcn_rcpf(x); }
TILEWISE_DEVICE int add_products(int sum, u32 a, u32 b) {
    for (int i = 0; i < 32; i += 8) sum += int(i8(a >> i)) * int(i8(b >> i));
    return sum;
}
TILEWISE_DEVICE u32 gather_bytes(const u32 (&words)[4], int index) {
    const u32 pick = u32(index) | u32(index + 4)
                                      << 8;  // of the second word the low four bytes, of the first the high ones
    const u32 low = __builtin_amdgcn_perm(words[1], words[0], pick);
    const u32 high = __builtin_amdgcn_perm(words[3], words[2], pick);
    return (low & 0xffffu) | high << 16;
}

}  // namespace tilewise::gpu

#include "tanh.hpp"

namespace tilewise::gpu {
TILEWISE_DEVICE float tanhf(float x) { return tanh_by_powers(x); }  // that gpu/activation.hpp calls
}  // namespace tilewise::gpu

#endif  // __HIP__

#include "../gpu/packet.hpp"

namespace tilewise::hip {
using namespace gpu;
}  // namespace tilewise::hip

#if !defined(TILEWISE_EMULATED)  // then kernels/emulate/hip.hpp is here already

#define TILEWISE_LDS __attribute__((address_space(3)))
#define TILEWISE_GLOBAL __attribute__((address_space(1)))

namespace tilewise::gpu {

inline constexpr int kArchLanes = 64;  // of a wave

// ---- Threads, blocks and shared memory ----

TILEWISE_DEVICE int thread_index() { return int(__builtin_amdgcn_workitem_id_x()); }
TILEWISE_DEVICE int lane_index() { return int(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0))); }
TILEWISE_DEVICE u32 block_index() { return __builtin_amdgcn_workgroup_id_x(); }
TILEWISE_DEVICE int block_threads() { return int(__builtin_amdgcn_workgroup_size_x()); }
TILEWISE_DEVICE u32 block_count() { return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(); }
// A number that all threads of a wave have anyway, from then on known to be so.
TILEWISE_DEVICE int uniform(int x) { return __builtin_amdgcn_readfirstlane(x); }
TILEWISE_DEVICE int warp_index() { return uniform(thread_index() / kArchLanes); }

TILEWISE_DEVICE u32 from_lane(u32 x, int lane) { return u32(__builtin_amdgcn_ds_bpermute(lane * 4, int(x))); }
TILEWISE_DEVICE float exchange(float x, int mask) { return float_of(from_lane(bits_of(x), lane_index() ^ mask)); }

TILEWISE_DEVICE void sync_block() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
TILEWISE_DEVICE void sync_warp() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// The block's dynamic shared memory.
extern __shared__ __attribute__((aligned(1024))) u8 tilewise_shared[];
TILEWISE_DEVICE SharedAddress shared_start() {
    return SharedAddress(reinterpret_cast<__UINTPTR_TYPE__>((TILEWISE_LDS u8*)tilewise_shared));
}

// A kernel's arguments where the driver put them: for a function that is called the compiler would copy them to scratch.
template <class Args>
TILEWISE_DEVICE const Args& in_place(const Args&) {
    return *(const Args*)(const __attribute__((address_space(4))) Args*)__builtin_amdgcn_kernarg_segment_ptr();
}

// A kernel starts when the one before it has ended.
TILEWISE_DEVICE void griddep_wait() {}
TILEWISE_DEVICE void griddep_launch() {}
TILEWISE_DEVICE void prefetch_line(const void*) {}

// ---- Plain accesses of 1 to 16 bytes; the address is a multiple of the size ----

template <int bytes>
struct RawAccess {
    typedef u32 type __attribute__((ext_vector_type(bytes / 4)));
};
template <>
struct RawAccess<4> {
    using type = u32;
};
template <>
struct RawAccess<2> {
    using type = u16;
};
template <>
struct RawAccess<1> {
    using type = u8;
};
template <int bytes>
using Raw = typename RawAccess<bytes>::type;

template <int bytes>
TILEWISE_DEVICE Packet<bytes> load_global(const void* from) {
    return __builtin_bit_cast(Packet<bytes>, *(const TILEWISE_GLOBAL Raw<bytes>*)from);
}
template <int bytes>
TILEWISE_DEVICE void store_global(void* to, const Packet<bytes>& p) {
    *(TILEWISE_GLOBAL Raw<bytes>*)to = __builtin_bit_cast(Raw<bytes>, p);
}

template <class T>
TILEWISE_DEVICE TILEWISE_LDS T* shared_at(SharedAddress at) {
    return (TILEWISE_LDS T*)at;
}
template <int bytes>
TILEWISE_DEVICE void store_shared(SharedAddress to, const Packet<bytes>& p) {
    *shared_at<Raw<bytes>>(to) = __builtin_bit_cast(Raw<bytes>, p);
}
template <int bytes>
TILEWISE_DEVICE Packet<bytes> load_shared(SharedAddress from) {
    return __builtin_bit_cast(Packet<bytes>, *shared_at<Raw<bytes>>(from));
}
TILEWISE_DEVICE float load_shared_float(SharedAddress from) { return *shared_at<float>(from); }
TILEWISE_DEVICE void load_shared_float4(SharedAddress from, float (&x)[4]) {
    const Packet<16> four = load_shared<16>(from);
    TILEWISE_UNROLL
    for (int i = 0; i < 4; ++i) x[i] = float_of(four.words[i]);
}

TILEWISE_DEVICE void load_shared_float2(SharedAddress from, float& x, float& y) {
    const Packet<8> two = load_shared<8>(from);
    x = float_of(two.words[0]), y = float_of(two.words[1]);
}
TILEWISE_DEVICE void store_shared_float(SharedAddress to, float x) { *shared_at<float>(to) = x; }
TILEWISE_DEVICE void store_shared_float2(SharedAddress to, float x, float y) {
    store_shared<8>(to, {{bits_of(x), bits_of(y)}});
}

// ---- Between blocks: words that say that what was written before them can be read ----

TILEWISE_DEVICE u64 load_acquire(const u64* from) {
    return __scoped_atomic_load_n((const TILEWISE_GLOBAL u64*)from, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE);
}
// Lets the device see what this wave has written. A barrier waits for no writes to global memory, and a release is for those of its
// own wave alone: who writes before a barrier, behind which another wave releases a word, publishes first.
TILEWISE_DEVICE void publish() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent"); }
TILEWISE_DEVICE void store_release(u64* to, u64 value) {
    __scoped_atomic_store_n((TILEWISE_GLOBAL u64*)to, value, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE);
}
TILEWISE_DEVICE void add_release(u64* to, u64 value) {
    __scoped_atomic_fetch_add((TILEWISE_GLOBAL u64*)to, value, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE);
}
// Four neighbours, each addition indivisible; the order among blocks is open.
template <class T>
TILEWISE_DEVICE void add_global(T* to, const T (&x)[4]) {
    TILEWISE_UNROLL
    for (int i = 0; i < 4; ++i) {
        __scoped_atomic_fetch_add((TILEWISE_GLOBAL T*)(to + i), x[i], __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    }
}

// ---- Copies to shared memory, which here are done on the spot ----

template <int bytes>
TILEWISE_DEVICE void copy_async(SharedAddress to, const void* from, int valid) {
    Packet<bytes> p = zero_packet<bytes>();
    if (valid != 0) p = load_global<bytes>(from);
    store_shared<bytes>(to, p);
}
TILEWISE_DEVICE void commit_copies() {}
template <int pending>
TILEWISE_DEVICE void wait_copies() {}

}  // namespace tilewise::gpu

namespace tilewise::hip {

// ---- Loads by offsets of 32 bits from an address that all lanes of a wave have ----

// Offsets below `bytes` are read; what lies beyond, kOutside most of all, is zero. Straight code, where a branch would take the lanes
// apart.
struct Bounded {
    __amdgpu_buffer_rsrc_t memory;
};
inline constexpr u32 kOutside = ~0u, kMostOffset = 0x80000000u;

TILEWISE_DEVICE u32 uniform(u32 x) { return u32(gpu::uniform(int(x))); }
TILEWISE_DEVICE u64 uniform(u64 x) { return u64(uniform(u32(x >> 32))) << 32 | uniform(u32(x)); }
TILEWISE_DEVICE const char* uniform(const char* at) { return reinterpret_cast<const char*>(uniform(u64(at))); }
TILEWISE_DEVICE Bounded bounded(const char* base, u32 bytes) {
    constexpr int kRawWords = 0x00020000;
    return {__builtin_amdgcn_make_buffer_rsrc(const_cast<char*>(base), 0, bytes, kRawWords)};
}
// `common`, the same for all lanes, comes on top; offset and common together are below `bytes`, or offset alone is not, or common is 0.
template <int bytes>
TILEWISE_DEVICE Packet<bytes> load_bounded(const Bounded& from, u32 offset, u32 common = 0) {
    const int at = int(offset), all = int(common);
    if constexpr (bytes == 16) {
        return __builtin_bit_cast(Packet<16>, __builtin_amdgcn_raw_buffer_load_b128(from.memory, at, all, 0));
    } else if constexpr (bytes == 8) {
        return __builtin_bit_cast(Packet<8>, __builtin_amdgcn_raw_buffer_load_b64(from.memory, at, all, 0));
    } else if constexpr (bytes == 4) {
        return __builtin_bit_cast(Packet<4>, __builtin_amdgcn_raw_buffer_load_b32(from.memory, at, all, 0));
    } else if constexpr (bytes == 2) {
        return __builtin_bit_cast(Packet<2>, __builtin_amdgcn_raw_buffer_load_b16(from.memory, at, all, 0));
    } else {
        return __builtin_bit_cast(Packet<1>, __builtin_amdgcn_raw_buffer_load_b8(from.memory, at, all, 0));
    }
}

// ---- Copies straight to shared memory ----

// Each lane's bytes come to lie behind those of the lane before it; `to`, the same for all lanes, is where the first lane's do. As
// assembly: after the compiler's own function for this every wait is one for all copies.
template <int bytes>
TILEWISE_DEVICE void copy_direct(const Bounded& from, u32 offset, SharedAddress to) {
    static_assert(bytes == 4 || bytes == 16);
    if constexpr (bytes == 4) {
        asm volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tbuffer_load_dword %1, %2, 0 offen lds"
                     :
                     : "s"(to), "v"(offset), "s"(from.memory)
                     : "memory");
    } else {
        asm volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tbuffer_load_dwordx4 %1, %2, 0 offen lds"
                     :
                     : "s"(to), "v"(offset), "s"(from.memory)
                     : "memory");
    }
}
// Until no more than `pending` of the wave's copies, counted as instructions, are under way and its accesses of shared memory are done;
// then for the other waves of the block.
template <int pending>
TILEWISE_DEVICE void sync_copies() {
    static_assert(pending >= 0 && pending < 64, "the counter has six bits");
    asm volatile("s_waitcnt vmcnt(%0) lgkmcnt(0)\n\ts_barrier" : : "n"(pending) : "memory");
}
// The same without copies: loads to registers stay under way, for which a fence would wait.
TILEWISE_DEVICE void sync_shared() { asm volatile("s_waitcnt lgkmcnt(0)\n\ts_barrier" : : : "memory"); }

// The kernel's arguments, of which the compiler forgets what it has read so far.
template <class Args>
TILEWISE_DEVICE const Args& reread(const Args&) {
    auto* at = (const __attribute__((address_space(4))) Args*)__builtin_amdgcn_kernarg_segment_ptr();
    asm volatile("" : "+s"(at));
    return *(const Args*)at;
}

// A number that all lanes have, kept in a register of each from then on: scalar registers are few. uniform() brings it back.
TILEWISE_DEVICE u32 in_lanes(u32 x) {
    asm volatile("" : "+v"(x));
    return x;
}

// An address of which the compiler no longer knows where it came from. Of reads at addresses that it knows ahead of a loop it makes two
// of 8 bytes each.
TILEWISE_DEVICE void hide(SharedAddress& at) { asm volatile("" : "+s"(at)); }

typedef short Short4 __attribute__((ext_vector_type(4)));

// Read in one piece: of 16 bytes whose halves are used apart the compiler reads some halves twice.
TILEWISE_DEVICE Packet<16> load_whole(SharedAddress from) {
    Raw<16> words = __builtin_bit_cast(Raw<16>, load_shared<16>(from));
    asm("" : "+v"(words));
    return __builtin_bit_cast(Packet<16>, words);
}

// Elements of 16 bits that lie across the lanes. Sixteen lanes each give the address of four elements: lanes 4 i to 4 i + 3 of line i of
// four lines. Lane l of the sixteen gets element l of each line.
TILEWISE_DEVICE Packet<8> load_turned(SharedAddress from) {
#if defined(__gfx950__)
    return __builtin_bit_cast(Packet<8>, __builtin_amdgcn_ds_read_tr16_b64_v4i16(shared_at<Short4>(from)));
#else
    return zero_packet<8>();  // no other chip has the instruction, and no config asks for it there
#endif
}

// The low halves of two words, or the high ones, as one word.
TILEWISE_DEVICE u32 low_halves(u32 first, u32 second) { return __builtin_amdgcn_perm(second, first, 0x05040100u); }
TILEWISE_DEVICE u32 high_halves(u32 first, u32 second) { return __builtin_amdgcn_perm(second, first, 0x07060302u); }

// Nothing is moved across this: what comes later needs its registers then, not now.
TILEWISE_DEVICE void keep_order() { __builtin_amdgcn_sched_barrier(0); }

// All lanes have the number. Whatever follows from it is worked out after the loads before this: all at once it would take more scalar
// registers than there are.
template <class T>
TILEWISE_DEVICE void after_loads(T& x) {
    asm volatile("" : "+s"(x) : : "memory");
}

// Ahead of the other waves of its SIMD, or no longer.
template <int priority>
TILEWISE_DEVICE void set_priority() {
    __builtin_amdgcn_s_setprio(priority);
}

// ---- Products of matrices, MFMA ----

// The sums of a lane in a product of m x m.
template <class Sum, int m>
struct SumVector {
    typedef Sum type __attribute__((ext_vector_type(m * m / kArchLanes)));
};
template <class Sum, int m>
using Sums = typename SumVector<Sum, m>::type;

typedef _Float16 Half4 __attribute__((ext_vector_type(4)));
typedef _Float16 Half8 __attribute__((ext_vector_type(8)));
typedef __bf16 Brain8 __attribute__((ext_vector_type(8)));
typedef int Int4 __attribute__((ext_vector_type(4)));

template <class To, int parts>
struct PacketParts {
    To part[parts];
};

// sum(m x m) += a(m x depth) * b(depth x m), depth being 64 / m times 16 bytes of elements. Lane l holds 16 bytes along k of row l % m of
// a (column of b), those of number l / m; of the sums it has number r of row 4 (l / m) + r % 4 + 4 (64 / m) (r / 4), column l % m.
// An instruction takes 4, 8 or 16 of the 16 bytes: which k these are matters to none, since a and b have the same there.
template <class T, int m>
TILEWISE_DEVICE void multiply_matrices(Sums<SumOf<T>, m>& sum, const Packet<16>& a, const Packet<16>& b) {
    static_assert(m == 16 || m == 32);
    if constexpr (kSame<T, Fp32>) {
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const float x = float_of(a.words[i]), y = float_of(b.words[i]);
            if constexpr (m == 32) sum = __builtin_amdgcn_mfma_f32_32x32x2f32(x, y, sum, 0, 0, 0);
            if constexpr (m == 16) sum = __builtin_amdgcn_mfma_f32_16x16x4f32(x, y, sum, 0, 0, 0);
        }
    } else if constexpr (kSame<T, Fp16>) {
#if defined(__gfx950__)
        const Half8 x = __builtin_bit_cast(Half8, a), y = __builtin_bit_cast(Half8, b);
        if constexpr (m == 32) sum = __builtin_amdgcn_mfma_f32_32x32x16_f16(x, y, sum, 0, 0, 0);
        if constexpr (m == 16) sum = __builtin_amdgcn_mfma_f32_16x16x32_f16(x, y, sum, 0, 0, 0);
#else
        using Halves = PacketParts<Half4, 2>;
        const Halves x = __builtin_bit_cast(Halves, a), y = __builtin_bit_cast(Halves, b);
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
            if constexpr (m == 32) sum = __builtin_amdgcn_mfma_f32_32x32x8f16(x.part[i], y.part[i], sum, 0, 0, 0);
            if constexpr (m == 16) sum = __builtin_amdgcn_mfma_f32_16x16x16f16(x.part[i], y.part[i], sum, 0, 0, 0);
        }
#endif
    } else if constexpr (kSame<T, Bf16>) {
#if defined(__gfx950__)
        const Brain8 x = __builtin_bit_cast(Brain8, a), y = __builtin_bit_cast(Brain8, b);
        if constexpr (m == 32) sum = __builtin_amdgcn_mfma_f32_32x32x16_bf16(x, y, sum, 0, 0, 0);
        if constexpr (m == 16) sum = __builtin_amdgcn_mfma_f32_16x16x32_bf16(x, y, sum, 0, 0, 0);
#else
        using Halves = PacketParts<Short4, 2>;
        const Halves x = __builtin_bit_cast(Halves, a), y = __builtin_bit_cast(Halves, b);
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
            if constexpr (m == 32) sum = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(x.part[i], y.part[i], sum, 0, 0, 0);
            if constexpr (m == 16) sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x.part[i], y.part[i], sum, 0, 0, 0);
        }
#endif
    } else {
        static_assert(kSame<T, Int8>, "types that the matrix unit multiplies");
#if defined(__gfx950__)
        const Int4 x = __builtin_bit_cast(Int4, a), y = __builtin_bit_cast(Int4, b);
        if constexpr (m == 32) sum = __builtin_amdgcn_mfma_i32_32x32x32_i8(x, y, sum, 0, 0, 0);
        if constexpr (m == 16) sum = __builtin_amdgcn_mfma_i32_16x16x64_i8(x, y, sum, 0, 0, 0);
#elif defined(__gfx90a__)
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int x = int(a.words[i]), y = int(b.words[i]);
            if constexpr (m == 32) sum = __builtin_amdgcn_mfma_i32_32x32x8i8(x, y, sum, 0, 0, 0);
            if constexpr (m == 16) sum = __builtin_amdgcn_mfma_i32_16x16x16i8(x, y, sum, 0, 0, 0);
        }
#else
        using Halves = PacketParts<long, 2>;
        const Halves x = __builtin_bit_cast(Halves, a), y = __builtin_bit_cast(Halves, b);
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
            if constexpr (m == 32) sum = __builtin_amdgcn_mfma_i32_32x32x16_i8(x.part[i], y.part[i], sum, 0, 0, 0);
            if constexpr (m == 16) sum = __builtin_amdgcn_mfma_i32_16x16x32_i8(x.part[i], y.part[i], sum, 0, 0, 0);
        }
#endif
    }
}

// The same of 8-bit floats as they are, which CDNA 4 multiplies: one or two times 16 bytes of a lane.
#if defined(__gfx950__)
typedef int Int8s __attribute__((ext_vector_type(8)));

template <class A, class B, int m, int packets>
TILEWISE_DEVICE void multiply_small_floats(Sums<float, m>& sum, const Packet<16> (&a)[packets],
                                           const Packet<16> (&b)[packets]) {
    static_assert((m == 16 || m == 32) && (packets == 1 || packets == 2));
    constexpr int kA = kSame<A, Bf8>, kB = kSame<B, Bf8>;  // the instruction's numbers of the types
    if constexpr (packets == 2) {
        struct Both {
            Packet<16> packet[2];
        };
        const Int8s x = __builtin_bit_cast(Int8s, Both{{a[0], a[1]}}),
                    y = __builtin_bit_cast(Int8s, Both{{b[0], b[1]}});
        if constexpr (m == 32) sum = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(x, y, sum, kA, kB, 0, 0, 0, 0);
        if constexpr (m == 16) sum = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, sum, kA, kB, 0, 0, 0, 0);
    } else {
        using Halves = PacketParts<long, 2>;
        const Halves x = __builtin_bit_cast(Halves, a[0]), y = __builtin_bit_cast(Halves, b[0]);
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
            const long p = x.part[i], q = y.part[i];
            if constexpr (m == 32 && !kA && !kB) sum = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(p, q, sum, 0, 0, 0);
            if constexpr (m == 32 && !kA && kB) sum = __builtin_amdgcn_mfma_f32_32x32x16_fp8_bf8(p, q, sum, 0, 0, 0);
            if constexpr (m == 32 && kA && !kB) sum = __builtin_amdgcn_mfma_f32_32x32x16_bf8_fp8(p, q, sum, 0, 0, 0);
            if constexpr (m == 32 && kA && kB) sum = __builtin_amdgcn_mfma_f32_32x32x16_bf8_bf8(p, q, sum, 0, 0, 0);
            if constexpr (m == 16 && !kA && !kB) sum = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(p, q, sum, 0, 0, 0);
            if constexpr (m == 16 && !kA && kB) sum = __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(p, q, sum, 0, 0, 0);
            if constexpr (m == 16 && kA && !kB) sum = __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8(p, q, sum, 0, 0, 0);
            if constexpr (m == 16 && kA && kB) sum = __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(p, q, sum, 0, 0, 0);
        }
    }
}
#endif

}  // namespace tilewise::hip

#endif  // TILEWISE_EMULATED
