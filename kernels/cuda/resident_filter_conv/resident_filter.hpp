// SPDX-License-Identifier: MIT
// The weights of a block of resident_filter_conv.hpp, fetched once: for each line of summed channels and each tap tile_n lines, as
// warpgroup products read their columns along the reduction; zeros where a column or a channel is none of the group's, or, of
// merged groups, of another one. Forward's lie like that in memory; backward data has to turn squares of 8 x 8 round.
#pragma once
#include "../../common/resident_filter_conv_args.hpp"
#include "../../gpu/packet.hpp"
#include "../primitives.hpp"

namespace tilewise::cuda::resident_filter_conv {

template <class Config>
struct ResidentFilter {
    using Storage = typename Config::A::Storage;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int kColumns = Config::tile_n, kTaps = kResidentFilterTaps * kResidentFilterTaps,
                         kThreads = 128 * Config::wave_m;
    static constexpr int kChunk = 8, kLineChunks = kResidentFilterLineChannels / kChunk;
    static constexpr int kLineBytes = kTaps * kColumns * kResidentFilterLineChannels * 2;  // of all columns and taps

    const KernelArgs& args;
    const ResidentFilterConvArgs& shape;
    SharedAddress to;
    int group, column, before;

    static TILEWISE_DEVICE int bytes(const ResidentFilterConvArgs& shape) {
        const int last = kTaps * kColumns * resident_filter_line_bytes(shape.last_steps);
        return (shape.lines - 1) * kLineBytes + (last + 1023) / 1024 * 1024;
    }

    TILEWISE_DEVICE void fetch() const {
        const int last_chunks = resident_filter_line_bytes(shape.last_steps) / 16;
        const int chunks = (shape.lines - 1) * kLineChunks + last_chunks;
        if constexpr (kBackward) {
            fetch_turned(chunks);
        } else {
            fetch_lines(chunks);
        }
    }

private:
    // Where chunk `chunk` of a column's channels is.
    TILEWISE_DEVICE SharedAddress place(int tap, int own, int chunk) const {
        const int line = chunk / kLineChunks, in_line = chunk - line * kLineChunks;
        const int bytes = line + 1 == shape.lines ? resident_filter_line_bytes(shape.last_steps) : 128;
        const auto offset = u32((tap * kColumns + own) * bytes + in_line * 16);
        return to + SharedAddress(line * kLineBytes) + (offset ^ ((offset >> 7 & u32(bytes / 16 - 1)) << 4));
    }

    TILEWISE_DEVICE void fetch_lines(int chunks) const {
        const int c = int(args.conv.c), k = int(args.conv.k);
        // Chunks are counted as if there were a power of two of them: no division.
        int bits = 1;
        while ((1 << bits) < chunks) ++bits;
        const auto* const from = static_cast<const Storage*>(args.b.data) + (Index(group) * k + column) * kTaps * c;
        TILEWISE_ROLLED
        for (int i = thread_index(); i < (kTaps * kColumns) << bits; i += kThreads) {
            const int chunk = i & ((1 << bits) - 1), row = i >> bits, own = row / kTaps, tap = row - own * kTaps;
            if (chunk >= chunks) continue;
            // The group is the column's where groups are merged.
            const int of = Config::merge > 1 ? (column + own) / k : 0, channel = chunk * kChunk - before - of * c;
            const bool is_there = channel >= 0 && channel < c && column + own < k * Config::merge;
            copy_async<16>(place(tap, own, chunk), from + (is_there ? row * c + channel : 0), is_there ? 16 : 0);
        }
        commit_copies();
        wait_copies<0>();
    }

    TILEWISE_DEVICE void fetch_turned(int chunks) const {
        constexpr int kAcross = kColumns / kChunk;
        const int c = int(args.conv.c), k = int(args.conv.k);
        const auto* const from = static_cast<const Storage*>(args.b.data) + Index(group) * k * kTaps * c + column;
        // Two squares at a time are on their way.
        constexpr int kBatch = 2;
        const int squares = kTaps * kAcross * chunks;
        TILEWISE_ROLLED
        for (int i = thread_index(); i < squares; i += kThreads * kBatch) {
            Packet<16> lines[kBatch][kChunk] = {};
            SharedAddress places[kBatch][kChunk];
            TILEWISE_UNROLL
            for (int b = 0; b < kBatch; ++b) {
                const int square = i + b * kThreads, chunk = square / (kTaps * kAcross);
                const int rest = square - chunk * (kTaps * kAcross), tap = rest / kAcross,
                          own = (rest - tap * kAcross) * kChunk;
                const int of = Config::merge > 1 ? (column + own) / c : 0, channel = chunk * kChunk - before - of * k;
                TILEWISE_UNROLL
                for (int j = 0; j < kChunk; ++j) places[b][j] = place(tap, own + j, chunk);
                if (square >= squares || channel < 0 || channel >= k || column + own >= c * Config::merge) continue;
                TILEWISE_UNROLL
                for (int j = 0; j < kChunk; ++j)
                    lines[b][j] =
                        load_global<16>(from + Index((of * k + channel + j) * kTaps + tap) * c + own - of * c);
            }
            TILEWISE_UNROLL
            for (int b = 0; b < kBatch; ++b) {
                if (i + b * kThreads >= squares) continue;
                TILEWISE_UNROLL
                for (int j = 0; j < kChunk; ++j) store_shared<16>(places[b][j], turned(lines[b], j));
            }
        }
    }
    // Element j of each line.
    static TILEWISE_DEVICE Packet<16> turned(const Packet<16> (&lines)[kChunk], int j) {
        Packet<16> out;
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const u32 low = lines[2 * i].words[j / 2], high = lines[2 * i + 1].words[j / 2];
            out.words[i] = j % 2 == 0 ? (low & 0xffffu) | high << 16 : low >> 16 | (high & 0xffff0000u);
        }
        return out;
    }
};

}  // namespace tilewise::cuda::resident_filter_conv
