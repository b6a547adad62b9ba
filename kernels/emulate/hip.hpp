// SPDX-License-Identifier: MIT
// The twin of hip/primitives.hpp for the host: the same functions, on a machine of fibers (gpu.hpp).
#pragma once
#define TILEWISE_EMULATED_LANES 64
#include "gpu.hpp"

namespace tilewise::hip {

using namespace gpu;

struct Bounded {
    const char* base;
    u32 bytes;
};
inline constexpr u32 kOutside = ~0u, kMostOffset = 0x80000000u;

TILEWISE_DEVICE u32 uniform(u32 x) { return x; }
TILEWISE_DEVICE u64 uniform(u64 x) { return x; }
TILEWISE_DEVICE const char* uniform(const char* at) { return at; }
TILEWISE_DEVICE Bounded bounded(const char* base, u32 bytes) { return {base, bytes}; }
template <int bytes>
TILEWISE_DEVICE Packet<bytes> load_bounded(const Bounded& from, u32 offset, u32 common = 0) {
    // As the hardware asks it, which goes wrong where `common` is more than there are bytes.
    return offset < from.bytes - common ? load_global<bytes>(from.base + offset + common) : zero_packet<bytes>();
}

// A copy is a group of its own: waits count instructions.
template <int bytes>
TILEWISE_DEVICE void copy_direct(const Bounded& from, u32 offset, SharedAddress to) {
    static_assert(bytes == 4 || bytes == 16);
    copy_async<bytes>(to + lane_index() * bytes, from.base + offset, offset < from.bytes ? bytes : 0);
    commit_copies();
}
template <int pending>
TILEWISE_DEVICE void sync_copies() {
    static_assert(pending >= 0 && pending < 64, "the counter has six bits");
    wait_copies<pending>();
    sync_block();
}
TILEWISE_DEVICE void sync_shared() { sync_block(); }
TILEWISE_DEVICE void keep_order() {}
TILEWISE_DEVICE Packet<16> load_whole(SharedAddress from) { return load_shared<16>(from); }
TILEWISE_DEVICE Packet<8> load_turned(SharedAddress from) {
    const int lane = lane_index(), first = lane / 16 * 16 + lane % 16 / 4;
    u32 half[4];
    for (int line = 0; line < 4; ++line) {
        half[line] = load_shared<2>(from_lane(from, first + 4 * line) + u32(lane % 4 * 2)).value;
    }
    return {{half[0] | half[1] << 16, half[2] | half[3] << 16}};
}
template <class T>
TILEWISE_DEVICE void after_loads(T&) {}
template <class Args>
TILEWISE_DEVICE const Args& reread(const Args& args) {
    return args;
}
TILEWISE_DEVICE u32 low_halves(u32 first, u32 second) { return (first & 0xffffu) | second << 16; }
TILEWISE_DEVICE u32 high_halves(u32 first, u32 second) { return first >> 16 | (second & 0xffff0000u); }
TILEWISE_DEVICE u32 in_lanes(u32 x) { return x; }
template <int priority>
TILEWISE_DEVICE void set_priority() {}

// The sums of a lane in a product of m x m.
template <class Sum, int m>
struct Sums {
    Sum value[m * m / kArchLanes];

    TILEWISE_DEVICE const Sum& operator[](int i) const { return value[i]; }
};

template <class T, int m>
TILEWISE_DEVICE void multiply_matrices(Sums<SumOf<T>, m>& sum, const Packet<16>& a, const Packet<16>& b) {
    static_assert(m == 16 || m == 32);
    tilewise_machine->multiply_squares(emulate::kElement<T>, emulate::kElement<T>, m, sum.value, a.words, b.words);
}
template <class A, class B, int m, int packets>
TILEWISE_DEVICE void multiply_small_floats(Sums<float, m>& sum, const Packet<16> (&a)[packets],
                                           const Packet<16> (&b)[packets]) {
    static_assert((m == 16 || m == 32) && (packets == 1 || packets == 2));
    for (int p = 0; p < packets; ++p) {
        tilewise_machine->multiply_squares(emulate::kElement<A>, emulate::kElement<B>, m, sum.value, a[p].words,
                                           b[p].words);
    }
}

}  // namespace tilewise::hip
