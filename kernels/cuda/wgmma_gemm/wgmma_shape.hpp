// SPDX-License-Identifier: MIT
// The numbers that follow from the config of a warpgroup GEMM (wgmma_gemm.hpp): who computes what, and where in shared
// memory things are. Also checks that the host will launch what the kernel needs.
#pragma once
#include "../../gpu/types.hpp"
#include "../../gpu/work_order.hpp"
#include "../hopper.hpp"

namespace tilewise::cuda::wgmma_gemm {

inline constexpr int kTapRoomLines = 8;  // a multiple of 8, so that B begins a block of the swizzle

template <class Config>
struct WgmmaShape {
    using A = typename Config::A;
    using B = typename Config::B;
    using Out = typename Config::Out;
    using Sum = SumOf<A>;

    static constexpr int kTileM = Config::tile_m, kTileN = Config::tile_n, kTileK = Config::tile_k;
    static constexpr bool kTakesTurns = Config::pipeline == Pipeline::compv5;
    static constexpr int kWaves = Config::wave_m;
    static constexpr int kWaveRows = kTakesTurns ? kTileM : kTileM / kWaves;
    static constexpr int kRepeats =
        kWaveRows / 64;                          // products of 64 rows that a warpgroup issues for each 32 bytes of k
    static constexpr int kOwnSums = kTileN / 2;  // of a thread, for each repeat
    using Sums = Sum[kRepeats][kOwnSums];
    // The matrix unit adds up products of 8-bit floats with 13 bits: the sums of a few stages are added up in fp32.
    static constexpr bool kPromotes = kIs8BitFloat<A> && Config::math == Math::strict;
    static constexpr bool kHandsOver = requires { Config::compute_registers; };  // registers, to those that compute
    static constexpr int kStages = Config::stages;
    // Without a warpgroup that only copies, a thread of those that compute does it (compv5 and compv6 have one).
    static constexpr bool kCopiesAside = Config::producer_waves > 0;
    // Blocks of the next kernel find room beside those of this one. A warp that copies is enough then: it leaves registers to
    // the others, which come first, since warpgroups begin with every fourth warp.
    static constexpr bool kLeavesRoom = kBlocksPerUnit<Config> > 1 && kCopiesAside;
    static constexpr int kCopyThreads = kLeavesRoom ? 32 : 128 * Config::producer_waves;
    static constexpr int kFirstComputing = kLeavesRoom ? 0 : kCopyThreads;
    static constexpr bool kPackedB = Config::pipeline == Pipeline::preshuffle;
    static constexpr bool kStreams = Config::stream_k != StreamK::off;
    using Order = TileOrder<Config::cluster_m, Config::cluster_n>;
    static constexpr int kClusterM = Config::cluster_m, kClusterN = Config::cluster_n;
    static constexpr int kCluster = kClusterM * kClusterN;  // blocks that share loads
    // The blocks of a cluster share out k instead, and add up in shared memory: results do not pass through buffers.
    static constexpr bool kSumsInCluster = Config::cluster_k;
    using Walk = typename WalkChoice<kStreams, Order, kSumsInCluster>::type;

    // Swapped, the rows of a tile are columns of C and the other way round: C' = B' A', so that few rows of C fill the narrow
    // side of the products. Then the operand of the rows is B.
    static constexpr bool kSwapped = Config::swap_ab;
    static constexpr bool kRowsAlongK = kSwapped ? !Config::b_row : Config::a_row;
    static constexpr bool kColumnsAlongK = kSwapped ? Config::a_row : !Config::b_row;

    static constexpr int kLineBytes = 128;  // of results, and of most operands
    // A stage holds a line of operands along k for each tap. Those of convolutions with few channels may be
    // half as long, as may be lines along n.
    static constexpr int kDepthBytes = kTileK * A::bytes % kLineBytes == 0 ? kLineBytes : kLineBytes / 2;
    static constexpr int kDepth = kDepthBytes / A::bytes;
    static constexpr int kStepBytes = 32, kSteps = kDepthBytes / kStepBytes;  // of k in one product, products in a line
    static constexpr int kRowLineBytes = kRowsAlongK ? kDepthBytes : kLineBytes;
    static constexpr int kColumnLineBytes = kColumnsAlongK                        ? kDepthBytes
                                            : kTileN * B::bytes % kLineBytes == 0 ? kLineBytes
                                                                                  : kLineBytes / 2;
    static constexpr int kColumnLine = kColumnLineBytes / B::bytes;
    // A stage may hold several taps of a convolution (im2col_conv.hpp): one operand A with room for the taps to shift it by
    // lines, and a B for each.
    static constexpr int kTaps = kTileK / kDepth, kRoomLines = kTaps > 1 ? kTapRoomLines : 0;
    static constexpr int kBytesA = kTileM * kDepthBytes + kRoomLines * kRowLineBytes, kTapBytes = kTileN * kDepthBytes;
    static constexpr int kBytesB = kTaps * kTapBytes;
    static constexpr int kCopiedBytes = kBytesA + kBytesB;
    // Matrices along k have a line for each row or column, of which few may be there (MatrixSource::copied_bytes).
    static constexpr bool kTrimsRows = kRowsAlongK && kCluster == 1;
    static constexpr bool kTrimsColumns = kColumnsAlongK && kCluster == 1 && !kPackedB;
    static constexpr int kStageBytes = (kCopiedBytes + 1023) / 1024 * 1024;  // stages begin blocks of the swizzle
    static constexpr int kStagingBytes = 64 * kLineBytes;                    // one buffer; each warpgroup has two
    // Three products of fp32's tf32 halves: behind the stages, what the matrix unit leaves out of them (wgmma_halves.hpp).
    static constexpr bool kThree = Config::math == Math::tf32x3;
    static constexpr int kRests = kStages * kStageBytes;
    static constexpr int kStaging = (kThree ? 2 : 1) * kStages * kStageBytes;
    // Blocks that leave room have one tile, whose results pass through the ring when it is done with.
    static constexpr int kResults = kLeavesRoom ? 0 : kStaging;
    static constexpr int kBarriers = kStaging + (kSumsInCluster || kLeavesRoom ? 0 : kWaves * 2 * kStagingBytes);
    static constexpr int kBarrierBytes = 1024;

    // Columns of C that leave by one copy, and the XOR that the copy expects in their lines. The last ones of a tile of pixels
    // that several taps meet may be fewer: the copy then ends with the columns of C (im2col_conv.hpp).
    static constexpr bool may_end_early() {
        if constexpr (requires { Config::direction; })
            return !Config::filter_1x1 && Config::direction != Direction::backward_weight;
        return false;
    }
    static constexpr int store_columns(int most) {
        int columns = most;
        if (may_end_early()) {
            while (kTileN <= columns / 2) columns /= 2;
        } else {
            while (kTileN % columns != 0) columns /= 2;
        }
        return columns;
    }
    static constexpr int kStoreColumns = store_columns(kLineBytes / Out::bytes);
    static constexpr int kStoreBytes = kStoreColumns * Out::bytes;
    static constexpr int kStoreChunks = (kTileN + kStoreColumns - 1) / kStoreColumns;
    static constexpr bool kStoresWhole = kTileN % kStoreColumns == 0;
    static TILEWISE_DEVICE constexpr int columns_of(int chunk) {
        return kTileN - chunk * kStoreColumns < kStoreColumns ? kTileN - chunk * kStoreColumns : kStoreColumns;
    }
    // Lines of C that begin anywhere cannot leave by tensor copies.
    static constexpr bool kStoresBoxes =
        Config::c_row && !kSwapped && Config::vector_c * Out::bytes == 16 && !kSumsInCluster;
    // The other way, sums go through the buffers as they are.
    static constexpr int kStagedColumns = kTileN % 64 == 0 ? 64 : kTileN % 32 == 0 ? 32 : 16;
    static constexpr int kStagedChunks = kTileN / kStagedColumns;

    // Rows of 16-bit results that begin anywhere are shifted on their way.
    static constexpr bool kStoresRows =
        Out::bytes == 2 && Config::c_row && !kSwapped && !kStoresBoxes && !kSumsInCluster;

    static_assert(Config::wave_n == 1 && Config::wave_k == 1 && Config::warp_m == 64 && Config::warp_n == kTileN);
    static_assert(kTileK == kTaps * kDepth, "a stage is one line deep for each tap");
    static_assert(kWaveRows % 64 == 0 && kWaves <= 3);
    static_assert(kColumnsAlongK || kTileN % kColumnLine == 0, "lines along the columns are whole");
    static_assert(!(kThree || kPackedB) || kStageBytes == kCopiedBytes);
    static_assert(!kSwapped || kCluster == 1);
    static_assert(!kSumsInCluster || (kCluster == 1 && !kTakesTurns));
    static_assert(A::bytes == B::bytes && (A::bytes == 2 || (kRowsAlongK && kColumnsAlongK)),
                  "only operands of 16 bits may lie along the rows or columns");
    static_assert(!kLeavesRoom || (!kThree && !kHandsOver && !kTakesTurns && !kStreams && kCluster == 1 &&
                                   kWaves * 2 * kStagingBytes <= kStaging));
    static_assert(!kSame<A, Fp32> || Config::math == Math::tf32 || (kThree && kCopiesAside), "fp32 is cut to tf32");
    static_assert(kBarriers + kBarrierBytes == Config::shared_bytes && Config::threads == kCopyThreads + 128 * kWaves);
    static constexpr int kStageBarrierBytes = 32;
    static_assert(kStages * kStageBarrierBytes <= kBarrierBytes);
    static_assert(!kTakesTurns || (kCopiesAside && kWaves == 2 && !kStreams), "two warpgroups that only compute");
    static_assert(kCluster == 1 || (!kStreams && !kPackedB), "what only single blocks do");
    static_assert(!kPackedB || (kColumnsAlongK && !kSwapped), "B is packed from lines along k");

    // Where a tile begins, in its own rows and columns.
    static TILEWISE_DEVICE int first_row(const TilePlace& tile) {
        return static_cast<int>(kSwapped ? tile.tile_n : tile.tile_m) * kTileM;
    }
    static TILEWISE_DEVICE int first_column(const TilePlace& tile) {
        return static_cast<int>(kSwapped ? tile.tile_m : tile.tile_n) * kTileN;
    }
};

// A thread among those that compute.
struct WgmmaPlace {
    int wave;    // which computing warpgroup this is
    int thread;  // of the warpgroup
    TILEWISE_DEVICE int barrier() const { return 1 + wave; }
    TILEWISE_DEVICE void sync() const { named_sync(barrier(), 128); }
};

}  // namespace tilewise::cuda::wgmma_gemm
