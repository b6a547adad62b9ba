// SPDX-License-Identifier: MIT
// The host's twins of what every GPU has, on a machine of fibers (common/machine.hpp); the twins of a vendor's own instructions include
// this and say how many lanes a warp has. A kernel's source that includes those first is compiled by the host's compiler without a change
// to any template. Accesses are checked: alignment, the bounds of shared memory, that global memory is the device's.
#pragma once
#include "../common/machine.hpp"
#include "../gpu/packet.hpp"

#define TILEWISE_EMULATED
#define __global__ __attribute__((visibility("default")))
#define __launch_bounds__(...)
#define __grid_constant__

// Set by the device that loads the kernel.
extern "C" __attribute__((visibility("default"))) tilewise::Machine* tilewise_machine;
tilewise::Machine* tilewise_machine = nullptr;

namespace tilewise::gpu {

inline constexpr int kArchLanes = TILEWISE_EMULATED_LANES;  // of a warp

// ---- Threads, blocks and shared memory ----

TILEWISE_DEVICE int thread_index() { return tilewise_machine->me->thread; }
TILEWISE_DEVICE int lane_index() { return thread_index() % kArchLanes; }
TILEWISE_DEVICE u32 block_index() { return tilewise_machine->me->block; }
TILEWISE_DEVICE u32 block_count() { return tilewise_machine->me->block_count; }
TILEWISE_DEVICE int block_threads() { return tilewise_machine->me->block_threads; }
TILEWISE_DEVICE int warp_index() { return thread_index() / kArchLanes; }
TILEWISE_DEVICE int uniform(int x) { return x; }

TILEWISE_DEVICE u32 from_lane(u32 x, int lane) { return tilewise_machine->shuffle(x, lane); }
TILEWISE_DEVICE float exchange(float x, int mask) {
    return float_of(tilewise_machine->shuffle(bits_of(x), lane_index() ^ mask));
}

TILEWISE_DEVICE void sync_block() { tilewise_machine->block_sync(0, 0); }
TILEWISE_DEVICE void sync_warp() { tilewise_machine->warp_sync(); }

TILEWISE_DEVICE SharedAddress shared_start() { return kEmulatedSharedStart; }

template <class Args>
TILEWISE_DEVICE const Args& in_place(const Args& args) {
    return args;
}

// Kernels run one after another here.
TILEWISE_DEVICE void griddep_wait() {}
TILEWISE_DEVICE void griddep_launch() {}

TILEWISE_DEVICE void prefetch_line(const void* at) { tilewise_machine->check_global(at, 4); }
TILEWISE_DEVICE void prefetch_l2(const void* at) { tilewise_machine->check_global(at, 1); }

// ---- Plain accesses ----

namespace emulate {

template <int bytes>
TILEWISE_DEVICE u8* shared_at(SharedAddress at) {
    const EmulatedThread& me = *tilewise_machine->me;
    const u32 offset = at - kEmulatedSharedStart;
    if (offset > me.shared_bytes - bytes || me.shared_bytes < bytes || offset % bytes != 0) {
        tilewise_machine->fault("an access of {} bytes at byte {} of shared memory, which is outside or no multiple",
                                bytes, offset);
    }
    return me.shared + offset;
}

}  // namespace emulate

template <int bytes>
TILEWISE_DEVICE Packet<bytes> load_global(const void* from) {
    tilewise_machine->check_global(from, bytes);
    Packet<bytes> p;
    __builtin_memcpy(&p, from, bytes);
    return p;
}
template <int bytes>
TILEWISE_DEVICE void store_global(void* to, const Packet<bytes>& p) {
    tilewise_machine->check_global(to, bytes);
    __builtin_memcpy(to, &p, bytes);
}
template <int bytes>
TILEWISE_DEVICE void store_shared(SharedAddress to, const Packet<bytes>& p) {
    __builtin_memcpy(emulate::shared_at<bytes>(to), &p, bytes);
}

template <int bytes>
TILEWISE_DEVICE Packet<bytes> load_shared(SharedAddress from) {
    Packet<bytes> p;
    __builtin_memcpy(&p, emulate::shared_at<bytes>(from), bytes);
    return p;
}

TILEWISE_DEVICE float load_shared_float(SharedAddress from) {
    float x;
    __builtin_memcpy(&x, emulate::shared_at<4>(from), 4);
    return x;
}
TILEWISE_DEVICE void load_shared_float2(SharedAddress from, float& x, float& y) {
    const u8* const at = emulate::shared_at<8>(from);
    __builtin_memcpy(&x, at, 4);
    __builtin_memcpy(&y, at + 4, 4);
}
TILEWISE_DEVICE void load_shared_float4(SharedAddress from, float (&x)[4]) {
    __builtin_memcpy(x, emulate::shared_at<16>(from), 16);
}
TILEWISE_DEVICE void store_shared_float(SharedAddress to, float x) {
    __builtin_memcpy(emulate::shared_at<4>(to), &x, 4);
}
TILEWISE_DEVICE void store_shared_float2(SharedAddress to, float x, float y) {
    const float both[2] = {x, y};
    __builtin_memcpy(emulate::shared_at<8>(to), both, 8);
}

// ---- Between blocks: one thread runs at a time, so all of this is indivisible and in order ----

TILEWISE_DEVICE u64 load_acquire(const u64* from) {
    tilewise_machine->yield();  // who reads again and again waits for others
    tilewise_machine->check_global(from, sizeof *from);
    return *from;
}
TILEWISE_DEVICE void publish() {}
TILEWISE_DEVICE void store_release(u64* to, u64 value) {
    tilewise_machine->check_global(to, sizeof *to);
    *to = value;
}
TILEWISE_DEVICE void add_release(u64* to, u64 value) {
    tilewise_machine->check_global(to, sizeof *to);
    *to += value;
}
template <class T>
TILEWISE_DEVICE void add_global(T* to, const T (&x)[4]) {
    tilewise_machine->check_global(to, sizeof x);
    for (int i = 0; i < 4; ++i) to[i] += x[i];
}

// ---- Asynchronous copies ----

TILEWISE_DEVICE void hide(SharedAddress&) {}

template <int bytes>
TILEWISE_DEVICE void copy_async(SharedAddress to, const void* from, int valid) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16);
    emulate::shared_at<bytes>(to);
    tilewise_machine->copy_async(to, from, bytes, valid);
}
TILEWISE_DEVICE void commit_copies() { tilewise_machine->commit_copies(); }
template <int pending>
TILEWISE_DEVICE void wait_copies() {
    tilewise_machine->wait_copies(pending);
}

namespace emulate {

template <class T>
inline constexpr KernelDType kElement = kSame<T, Fp32>   ? KernelDType::fp32
                                        : kSame<T, Fp16> ? KernelDType::fp16
                                        : kSame<T, Bf16> ? KernelDType::bf16
                                        : kSame<T, Fp8>  ? KernelDType::fp8
                                        : kSame<T, Bf8>  ? KernelDType::bf8
                                                         : KernelDType::int8;

}  // namespace emulate

}  // namespace tilewise::gpu
