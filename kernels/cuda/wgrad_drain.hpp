// SPDX-License-Identifier: MIT
// The end of a block of backward weight by patches (patch_wgrad.hpp): the sums of its waves, which lie in shared memory in the place
// of the stages, become weights or parts of them. Waves that share out pixels are added up in their order. With cluster_k so do
// the blocks of a cluster, which have neighbouring parts: each takes a share of the results and reads what all of them have. With
// two_stage the sums go to the workspace, [set of parts][group][k][tap][c], for reduce_many.hpp; else they are all, and leave.
// Merged groups are the diagonal of a wave's product: the rest is passed over. All threads call run together.
#pragma once
#include "../gpu/drain.hpp"
#include "../gpu/epilogue.hpp"
#include "hopper.hpp"

namespace tilewise::cuda {

// The part of the product that one block computes.
struct WgradPlace {
    int part, set, rank;  // the part; which cluster of parts, and its place there
    int group, row, col;  // the first ones

    // Blocks that run at the same time should read the same pixels: parts are outermost, but for the `blocks` of a cluster.
    template <class Config>
    static TILEWISE_DEVICE WgradPlace of_block(const KernelArgs& args, int blocks, int tiles_m, int tiles_n) {
        WgradPlace p;
        const u32 together = Config::cluster_k ? u32(blocks) : 1;
        const u32 id = block_index() / together, rest = id / u32(tiles_m), up = rest / u32(tiles_n);
        p.rank = int(block_index() - id * together);
        p.row = int(id - rest * u32(tiles_m)) * Config::tile_m;
        p.col = int(rest - up * u32(tiles_n)) * Config::tile_n;
        const u32 blocks_of_groups = u32(args.conv.groups) / Config::merge;
        p.set = int(up / blocks_of_groups);
        p.group = int(up - u32(p.set) * blocks_of_groups) * Config::merge;
        p.part = p.set * int(together) + p.rank;
        return p;
    }
};

template <class Config, class Core>
struct WgradDrain {
    using Chain = ChainOf<Config>;
    using Out = typename Config::Out;
    static constexpr bool kMeets = Config::cluster_k;
    static constexpr int kWaveM = Core::kWaveM, kWaveN = Core::kWaveN;
    static constexpr int kPlain = Config::wave_m * Config::wave_n;  // waves of one share of the pixels
    static constexpr int kWaveGroups = Config::merge > 1 ? Core::kGroups : 1;
    // Words of the table: a row's place in a row of weights, and which of the wave's merged groups it is of.
    static constexpr u32 kNowhere = ~0u, kPlaceBits = 24, kPlaceMask = (1u << kPlaceBits) - 1;
    // Four neighbouring rows of a column at a time.
    static constexpr int kFour = 4, kPerColumn = kWaveM / kFour, kFours = kPlain * kWaveN * kPerColumn;
    static_assert(kWaveM % kFour == 0 && Core::kPitch % kChunkBytes == 0);
    // The blocks of a cluster read each other's sums: those of waves that share out pixels are added up before.
    static constexpr bool kAddsWavesFirst = kMeets && Config::wave_k > 1;
    static constexpr int kMostBlocks = 8;

    const KernelArgs& args;
    const WgradPlace& place;
    int blocks;  // of a cluster
    SharedAddress sums, row_words;

    static TILEWISE_DEVICE SharedAddress offset_of(int four) {
        const int column = four / kPerColumn;  // of all waves: they lie one behind the other
        return SharedAddress(column * Core::kPitch + (four - column * kPerColumn) * kChunkBytes);
    }

    TILEWISE_DEVICE void run() const {
        sync_block();
        if constexpr (kAddsWavesFirst) add_waves();
        int first = 0, end = kFours;
        if constexpr (kMeets) {
            cluster_sync_apart();
            first = kFours * place.rank / blocks, end = kFours * (place.rank + 1) / blocks;
        }
        if constexpr (!kMeets) {
            leave_all<Config::wave_k>(first, end);
        } else if (blocks == 2) {
            leave_all<2>(first, end);
        } else if (blocks <= 4) {
            leave_all<4>(first, end);
        } else {
            leave_all<kMostBlocks>(first, end);
        }
        if constexpr (kMeets) cluster_sync_apart();  // nobody reads this block's sums any more
    }

    TILEWISE_DEVICE void add_waves() const {
        TILEWISE_ROLLED
        for (int four = thread_index(); four < kFours; four += Config::threads) {
            float sum[kFour];
            add_up<Config::wave_k, kPlain * Core::kSumBytes, false>(sums + offset_of(four), sum);
            store_shared_float2(sums + offset_of(four), sum[0], sum[1]);
            store_shared_float2(sums + offset_of(four) + 8, sum[2], sum[3]);
        }
    }
    // Fours that are added up: apart in this block's shared memory, or at the same place in that of `count` blocks.
    template <int kCount, int kApart, bool in_cluster>
    static TILEWISE_DEVICE void load_terms(SharedAddress from, float (&terms)[kCount][kFour], int count) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            if constexpr (in_cluster) {
                TILEWISE_UNROLL
                for (float& term : terms[i]) term = 0;
                if (i < count) load_cluster_float4(in_block(from, unsigned(i)), terms[i]);
            } else {
                load_shared_float4(from + SharedAddress(i * kApart), terms[i]);
            }
        }
    }
    template <int kCount>
    static TILEWISE_DEVICE void add_terms(const float (&terms)[kCount][kFour], float (&sum)[kFour]) {
        TILEWISE_UNROLL
        for (int e = 0; e < kFour; ++e) {
            sum[e] = terms[0][e];
            TILEWISE_UNROLL
            for (int i = 1; i < kCount; ++i) sum[e] += terms[i][e];
        }
    }
    template <int kCount, int kApart, bool in_cluster>
    static TILEWISE_DEVICE void add_up(SharedAddress from, float (&sum)[kFour]) {
        float terms[kCount][kFour];
        load_terms<kCount, kApart, in_cluster>(from, terms, kCount);
        add_terms(terms, sum);
    }

    // A few fours of each thread are on their way at a time: another block's shared memory is far away.
    template <int kTerms>
    TILEWISE_DEVICE void leave_all(int first, int end) const {
        constexpr int kBatch = !kMeets || kTerms > 4 ? 1 : kTerms > 2 ? 2 : 4;
        TILEWISE_ROLLED
        for (int four = first + thread_index(); four < end; four += Config::threads * kBatch) {
            Leaving own[kBatch];
            float terms[kBatch][kTerms][kFour];
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) own[i] = leaving(four + i * Config::threads, end);
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) {
                if (own[i].is_there)
                    load_terms<kTerms, kPlain * Core::kSumBytes, kMeets>(sums + own[i].offset, terms[i], blocks);
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) {
                if (!own[i].is_there) continue;
                float sum[kFour];
                add_terms(terms[i], sum);
                leave(own[i], sum);
            }
        }
    }

    // Where four sums belong.
    struct Leaving {
        bool is_there, whole;  // whole: the four are neighbours of one group
        u32 word, group_of_col;
        SharedAddress offset, words;
        int group, k_of_group;
    };
    TILEWISE_DEVICE Leaving leaving(int four, int end) const {
        Leaving own{};
        if (four >= end) return own;
        const int k = int(conv().k), cols = Config::merge > 1 ? kWaveGroups * k : k;
        const int strip = four / kPerColumn, row = (four - strip * kPerColumn) * kFour;
        const int wave = strip / kWaveN, wave_n = wave / Config::wave_m, wave_m = wave % Config::wave_m;
        const int col = strip % kWaveN + (Config::merge > 1 ? 0 : place.col + wave_n * kWaveN);
        if (col >= cols) return own;
        own.group_of_col = Config::merge > 1 ? u32(col / k) : 0;
        own.words = row_words + SharedAddress(wave_m * kWaveM + row) * 4;
        own.whole = !Core::kFew && conv().c % kFour == 0;
        own.word = load_shared<4>(own.words).words[0];
        own.is_there = !own.whole || is_of(own.word, own.group_of_col);
        own.offset = offset_of(four);
        // Columns of merged groups count through the groups.
        own.group = place.group + (Config::merge > 1 ? wave_n * kWaveGroups : 0) + int(own.group_of_col);
        own.k_of_group = col - int(own.group_of_col) * k;
        return own;
    }
    TILEWISE_DEVICE void leave(const Leaving& own, const float (&sum)[kFour]) const {
        if (own.whole) return put_four(sum, own.group, own.k_of_group, own.word & kPlaceMask);
        TILEWISE_ROLLED
        for (int e = 0; e < kFour; ++e) {
            const u32 word = load_shared<4>(own.words + e * 4).words[0];
            const float value = e == 0 ? sum[0] : e == 1 ? sum[1] : e == 2 ? sum[2] : sum[3];
            if (is_of(word, own.group_of_col)) put_element(value, own.group, own.k_of_group, word & kPlaceMask);
        }
    }
    static TILEWISE_DEVICE bool is_of(u32 word, u32 group) {
        return word != kNowhere && (Config::merge == 1 || word >> kPlaceBits == group);
    }
    TILEWISE_DEVICE const KernelConv& conv() const { return args.conv; }
    TILEWISE_DEVICE float* workspace_row(Index group, Index k) const {
        return static_cast<float*>(args.workspace) + ((place.set * args.batch + group) * args.m + k) * args.n;
    }

    TILEWISE_DEVICE void put_four(const float (&sum)[kFour], Index group, Index k, u32 at) const {
        if constexpr (Config::two_stage) {
            const Packet<16> packed{{bits_of(sum[0]), bits_of(sum[1]), bits_of(sum[2]), bits_of(sum[3])}};
            store_global<16>(workspace_row(group, k) + at, packed);
        } else {
            const RunPlace place = run_place(args, group, k, Index(at), kFour);
            float values[kFour];
            finish_run<Chain, Out, Along::columns>(args, sum, place, values);
            write_run<Out>(args, place, values);
        }
    }
    TILEWISE_DEVICE void put_element(float sum, Index group, Index k, u32 at) const {
        if constexpr (Config::two_stage) {
            workspace_row(group, k)[at] = sum;
        } else {
            store<Out>(args, finish<Chain, Out>(args, sum, group, k, Index(at)), group, k, Index(at));
        }
    }
};

}  // namespace tilewise::cuda
