// SPDX-License-Identifier: MIT
// Gathered convolution on MFMA: what a generated stub includes. Walks, operands and bytes are those of ../../gpu/gather_conv.hpp; tiles
// lie along k in shared memory, whichever way they come.
#pragma once
#include "../deep_mainloop.hpp"
#include "../mfma_core.hpp"
#include "../turned_gather.hpp"
#include "merged_conv.hpp"

namespace tilewise::hip {

template <class Config>
struct GatheredConfig : Config {
    using Plain = Config;
    static constexpr bool gathers_along_k = true;
};

}  // namespace tilewise::hip

namespace tilewise::gpu {

template <class Config>
requires(Config::gathers_along_k) struct ConvTiles<Config> : ConvTiles<typename Config::Plain> {
    using Base = ConvTiles<typename Config::Plain>;
    template <class T, class Source, int extent, bool along_k, int vector>
    using Gather =
        typename hip::MfmaGatherChoice<T, Source, extent, Config::tile_k, along_k, vector, Config::threads>::type;
    template <class T, int extent, bool along_k, int vector>
    using Matrix = typename hip::MfmaTileChoice<T, extent, Config::tile_k, along_k, vector, Config::threads>::type;
    using ElementA = typename Config::A;
    using ElementB = typename Config::B;

    using WeightA =
        typename Either<Config::channels_last, Matrix<ElementA, Config::tile_m, false, Config::vector_a>,
                        Gather<ElementA, typename Base::Pixels, Config::tile_m, true, Config::vector_a>>::type;
    using RowsA = typename Either<
        Config::explicit_gemm, Matrix<ElementA, Config::tile_m, true, Config::vector_a>,
        Gather<ElementA, typename Base::Activation, Config::tile_m, Base::kRowsAlongK, Config::vector_a>>::type;
    using A = typename Either<Base::kWeight, WeightA, RowsA>::type;
    using WeightB = typename Either<
        Config::explicit_gemm, Matrix<ElementB, Config::tile_n, false, Config::vector_b>,
        Gather<ElementB, typename Base::Activation, Config::tile_n, Base::kPixelsAlongK, Config::vector_b>>::type;
    using DataB = Gather<ElementB, typename Base::Turned, Config::tile_n, false, Config::vector_b>;
    using Merged = hip::MergedWeights<ElementB, Config::ndim, Base::kForward, Base::kWide>;
    using MergedB = Gather<ElementB, Merged, Config::tile_n, Base::kForward, Config::vector_b>;
    using PlainB = typename Either<Base::kForward, typename Base::ForwardB, DataB>::type;
    using B =
        typename Either<Base::kWeight, WeightB, typename Either<(Config::merge > 1), MergedB, PlainB>::type>::type;
};

}  // namespace tilewise::gpu

namespace tilewise::hip::mfma_conv {

template <class Config>
using ConvConfig = GatheredConfig<LoopConfig<Config>>;
template <class Config>
using Core = MfmaCore<ConvConfig<Config>>;
template <class Config>
using MfmaConv = typename Either<(Config::merge > 1), MergedConv<ConvConfig<Config>, Core<Config>>,
                                 GatherConv<ConvConfig<Config>, Core<Config>>>::type;

}  // namespace tilewise::hip::mfma_conv

#define TILEWISE_HIP_MFMA_CONV(Config)                                       \
    TILEWISE_GPU_KERNELS(Config, tilewise::hip::mfma_conv::MfmaConv<Config>) \
    TILEWISE_GPU_EXPAND(Config, tilewise::hip::mfma_conv::MfmaConv<Config>)
