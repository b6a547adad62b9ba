// SPDX-License-Identifier: MIT
// The bytes of one access as registers, and addresses of shared memory: what the instructions (primitives.hpp) and their
// host twins take and give.
#pragma once
#include "types.hpp"

namespace tilewise::gpu {

using SharedAddress = u32;  // bytes from the start of shared memory

template <int bytes>
struct Packet {  // 4, 8 or 16 bytes as registers
    static_assert(bytes == 4 || bytes == 8 || bytes == 16);
    u32 words[bytes / 4];
};
template <>
struct Packet<1> {
    u8 value;
};
template <>
struct Packet<2> {
    u16 value;
};

template <int bytes>
TILEWISE_DEVICE Packet<bytes> zero_packet() {
    return {};
}

}  // namespace tilewise::gpu
