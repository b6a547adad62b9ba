// SPDX-License-Identifier: MIT
// The way of operand tiles that lie across k, elements of 16 or 32 bits, to shared memory, with the interface of OperandTile
// (../gpu/operand_tile.hpp): MFMA wants 16 bytes along k, so a thread reads `vector` elements of as many steps of k as these are, turns
// them around in its registers and writes a chunk for each. What lies outside the matrix, or beyond the end of k, is zero in shared
// memory and never read.
#pragma once
#include "../gpu/unaligned_tile.hpp"

namespace tilewise::hip {

template <class T, int extent, int depth, int vector, int threads>
struct TurnedTile {
    static constexpr bool kAlongK = true;
    static constexpr int kSteps = kChunkBytes / T::bytes;  // of k in a chunk
    using Layout = TileLayout<extent, depth * T::bytes>;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr int kAcross = depth / kSteps, kTotal = kAcross * (extent / vector);
    static constexpr int kCount = (kTotal + threads - 1) / threads;
    static constexpr int kAccessBytes = vector * T::bytes, kWords = (kAccessBytes + 3) / 4;
    static constexpr int kRegisters = kCount * kSteps * kWords;
    static_assert(T::bytes >= 2 && depth % kSteps == 0 && extent % vector == 0 && kAccessBytes <= kChunkBytes);

    using Access = Packet<kAccessBytes>;
    struct Unit {
        Access step[kSteps];
    };
    struct Registers {
        Unit unit[kCount];
    };

    const char* tile;  // its first element, at the first step of k
    Index line_bytes;  // from k to k
    int left;          // of the extent

    TILEWISE_DEVICE TurnedTile(const OperandView& view, Index first, Index k_begin)
        : tile(static_cast<const char*>(view.data) + (k_begin * view.line_stride + first) * T::bytes),
          line_bytes(view.line_stride * T::bytes),
          left(view.extent - first < extent ? int(view.extent - first) : extent) {}

    // Neighbouring threads take neighbouring chunks of a line.
    static TILEWISE_DEVICE int chunk_of(int i) { return (thread_index() + i * threads) % kAcross; }
    static TILEWISE_DEVICE int element_of(int i) { return (thread_index() + i * threads) / kAcross * vector; }
    static TILEWISE_DEVICE bool has_unit(int i) {
        return kTotal % threads == 0 || i + 1 < kCount || thread_index() + i * threads < kTotal;
    }

    TILEWISE_DEVICE void load_unit(Unit& unit, int i, int step, int k_left) const {
        const int first_k = chunk_of(i) * kSteps, element = element_of(i);
        const char* from = tile + (Index(step) * depth + first_k) * line_bytes + element * T::bytes;
        TILEWISE_UNROLL
        for (int j = 0; j < kSteps; ++j, from += line_bytes) {
            unit.step[j] = zero_packet<kAccessBytes>();
            if (has_unit(i) && first_k + j < k_left && element < left) unit.step[j] = load_global<kAccessBytes>(from);
        }
    }
    // Element number e of an access, in the low bits.
    static TILEWISE_DEVICE u32 bits_at(const Access& access, int e) {
        if constexpr (kAccessBytes < 4) {
            return access.value;
        } else if constexpr (T::bytes == 4) {
            return access.words[e];
        } else {
            return access.words[e / 2] >> (e % 2 * 16) & 0xffffu;
        }
    }
    static TILEWISE_DEVICE void put_unit(const Unit& unit, int i, SharedAddress to) {
        if (!has_unit(i)) return;
        TILEWISE_UNROLL
        for (int e = 0; e < vector; ++e) {
            Packet<kChunkBytes> chunk;
            TILEWISE_UNROLL
            for (int w = 0; w < 4; ++w) {
                if constexpr (T::bytes == 4) {
                    chunk.words[w] = bits_at(unit.step[w], e);
                } else {
                    chunk.words[w] = bits_at(unit.step[2 * w], e) | bits_at(unit.step[2 * w + 1], e) << 16;
                }
            }
            store_shared<kChunkBytes>(to + Layout::offset(element_of(i) + e, chunk_of(i)), chunk);
        }
    }

    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) load_unit(registers.unit[i], i, step, k_left);
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) put_unit(registers.unit[i], i, to);
    }
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        TILEWISE_ROLLED
        for (int i = 0; i < kCount; ++i) {
            Unit unit;
            load_unit(unit, i, step, k_left);
            put_unit(unit, i, to);
        }
    }
    // No copy turns them around: done on the spot.
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const { move(to, step, k_left); }
};

// Every tile comes to lie along k.
template <class T, int extent, int depth, bool k_contiguous, int vector, int threads>
struct MfmaTileChoice {
    using type = typename ProductTileChoice<T, extent, depth, k_contiguous, vector, threads>::type;
};
template <class T, int extent, int depth, int vector, int threads>
requires(T::bytes > 1) struct MfmaTileChoice<T, extent, depth, false, vector, threads> {
    using type = TurnedTile<T, extent, depth, vector, threads>;
};

}  // namespace tilewise::hip
