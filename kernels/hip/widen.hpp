// SPDX-License-Identifier: MIT
// 8-bit floats as fp16, which has every one of their values: a few operations on the bits of two at a time. The order changes, for every
// type alike: of four bytes the first and the third become a pair, then the second and the fourth. Products add up over k, and whose
// factors meet there stays. Host-compilable: it is tested there.
#pragma once
#include "../gpu/packet.hpp"

namespace tilewise::hip {

using namespace gpu;

// Two of fp16 times 256.
TILEWISE_DEVICE u32 scale_pair(u32 pair) {
#if defined(__HIP__)
    typedef _Float16 Half2 __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(u32, __builtin_bit_cast(Half2, pair) * Half2{256, 256});
#else
    return pack_pair<Fp16>(Fp16::to_float(u16(pair)) * 256, Fp16::to_float(u16(pair >> 16)) * 256);
#endif
}

// Of each half of the word the high byte. That of bf8 is the high byte of fp16. Of fp8 the bits are moved by one, which leaves a number
// 2^8 too small; all ones, which are NaN, become so.
template <class T>
TILEWISE_DEVICE u32 widen_high(u32 word) {
    if constexpr (kSame<T, Bf8>) return word & 0xff00ff00u;
    const u32 magnitude = word >> 1 & 0x3f803f80u;
    const u32 nan = (magnitude + 0x00800080u) & 0x40004000u;
    return scale_pair(magnitude | nan | (word & 0x80008000u));
}

// 16 elements of 8 bits as 16 of fp16.
template <class T>
TILEWISE_DEVICE void widen(const Packet<16>& bytes, Packet<16> (&halves)[2]) {
    TILEWISE_UNROLL
    for (int w = 0; w < 4; ++w) {
        halves[w / 2].words[w % 2 * 2] = widen_high<T>(bytes.words[w] << 8);
        halves[w / 2].words[w % 2 * 2 + 1] = widen_high<T>(bytes.words[w]);
    }
}

}  // namespace tilewise::hip
