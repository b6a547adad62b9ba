// SPDX-License-Identifier: MIT
// 8-bit floats as fp16, which has every one of their values. Host-compilable: it is tested there.
#pragma once
#include "../gpu/packet.hpp"

namespace tilewise::hip {

using namespace gpu;

// 16 elements of 8 bits as 16 of fp16.
template <class T>
TILEWISE_DEVICE void widen(const Packet<16>& bytes, Packet<16> (&halves)[2]) {
    TILEWISE_UNROLL
    for (int w = 0; w < 4; ++w) {
        float x[4];
        word_to_floats<T>(bytes.words[w], x);
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) halves[w / 2].words[w % 2 * 2 + i] = pack_pair<Fp16>(x[2 * i], x[2 * i + 1]);
    }
}

}  // namespace tilewise::hip
