// SPDX-License-Identifier: MIT
// The probes share these: the table they write, and single 16-bit elements of shared memory.
#pragma once
#include "primitives.hpp"

namespace tilewise::cuda {

TILEWISE_DEVICE u32* table_of(const KernelArgs& args) { return static_cast<u32*>(args.c.data); }

// An element's bits, from a byte address that is even.
TILEWISE_DEVICE u32 load_shared_half(SharedAddress from) {
    const u32 word = bits_of(load_shared_float(from & ~3u));
    return (from & 2u) ? word >> 16 : word & 0xffffu;
}
TILEWISE_DEVICE void store_shared_half(SharedAddress to, u32 bits) { store_shared<2>(to, Packet<2>{u16(bits)}); }

// Elements 0 to count - 1 from `to` on, shared out among the block's threads: bits(i) for element i.
template <class F>
TILEWISE_DEVICE void fill_shared(SharedAddress to, int count, F&& bits) {
    TILEWISE_ROLLED
    for (int i = thread_index(); i < count; i += block_threads()) store_shared_half(to + i * 2, bits(i));
}

}  // namespace tilewise::cuda
