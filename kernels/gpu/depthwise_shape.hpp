// SPDX-License-Identifier: MIT
// How depthwise kernels with a filter known when compiled cut up their work. A thread owns kVector neighbouring channels of a
// patch of kHeight x kWidth outputs; lanes lie side by side first along channels, then along patches of a line, warps of a
// block along further patches. Which input meets which output through which tap is known when compiled
// (depthwise_taps.hpp). Patches are counted along width, height, depth, images.
#pragma once
#include "depthwise_taps.hpp"
#include "packet.hpp"

namespace tilewise::gpu {

template <class Config>
struct DepthwiseShape {
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr bool kWeight = Config::direction == Direction::backward_weight;
    static constexpr int kLanes = kArchLanes, kVector = Config::vector_a;
    static constexpr int kAcross = Config::warp_n / kVector, kAlong = kLanes / kAcross;  // lanes
    static constexpr int kWarps = Config::wave_m, kThreads = kWarps * kLanes;
    static constexpr int kWidth = Config::warp_m / kAlong, kHeight = Config::tile_m / (kWarps * Config::warp_m);
    static_assert(kAcross * kAlong == kLanes && kWidth * kAlong == Config::warp_m);
    static_assert(Config::wave_n == 1 && Config::tile_n == Config::warp_n, "warps lie along the pixels");
    static constexpr int kRound = kWarps * kAlong;  // patches of a block at a time

    // 1 where the config does not say.
    static TILEWISE_DEVICE constexpr int dilation(int d) {
        return Config::ct_dilation[d] > 0 ? Config::ct_dilation[d] : 1;
    }
    using Rows = TapLine<kBackward, Config::ct_filter[1], Config::ct_stride[1], dilation(1), kHeight>;
    using Columns = TapLine<kBackward, Config::ct_filter[2], Config::ct_stride[2], dilation(2), kWidth>;
    static constexpr int kDepth = Config::ct_filter[0], kFilterRows = Config::ct_filter[1],
                         kFilterColumns = Config::ct_filter[2];
    static constexpr int kTaps = kDepth * kFilterRows * kFilterColumns;
    using Window = RowWindow<kBackward, Config::ct_filter[1], Config::ct_stride[1], dilation(1)>;

    static TILEWISE_DEVICE int lane_across() { return lane_index() % kAcross; }
    static TILEWISE_DEVICE int patch_in_round() { return thread_index() / kLanes * kAlong + lane_index() / kAcross; }
};

// A tensor's pixels as a kernel walks over them, channels innermost.
struct PixelGrid {
    int size[3];
    Index image_stride, pixel_stride;
};
TILEWISE_DEVICE PixelGrid pixel_grid(const Index (&size)[kMaxKernelDims], const KernelActivation& t) {
    return {{int(size[0]), int(size[1]), int(size[2])}, t.image_stride, t.pixel_stride};
}

// All patches of the outputs, and where each lies.
template <class Shape>
struct PatchWalk {
    using Rows = typename Shape::Rows;
    using Columns = typename Shape::Columns;
    struct Place {
        int image, depth, row, column;  // depth: of the output; row and column: patches
    };
    u32 columns, rows, depths, total;

    TILEWISE_DEVICE PatchWalk(const KernelConv& conv, const PixelGrid& out) {
        columns = Columns::patches(out.size[2], int(conv.pad[2]));
        rows = Rows::patches(out.size[1], int(conv.pad[1]));
        depths = out.size[0];
        total = columns * rows * depths * u32(conv.images);
    }
    TILEWISE_DEVICE Place locate(u32 patch) const {
        const u32 line = patch / columns, plane = line / rows, image = plane / depths;
        return {int(image), int(plane - image * depths), int(line - plane * rows), int(patch - line * columns)};
    }
};

// V neighbouring elements made fp32.
template <class T, int V>
TILEWISE_DEVICE void unpack_values(const Packet<V * T::bytes>& p, float (&x)[V]) {
    TILEWISE_UNROLL
    for (int i = 0; i < V; ++i) {
        if constexpr (V * T::bytes < 4) {
            const auto element = typename T::Storage(p.value >> (i * 8 * T::bytes));
            x[i] = T::to_float(element);
        } else if constexpr (kSame<T, Fp32>) {
            x[i] = float_of(p.words[i]);
        } else if constexpr (kSame<T, Bf16>) {
            x[i] = float_of(i % 2 == 0 ? p.words[i / 2] << 16 : p.words[i / 2] & 0xffff0000u);
        } else {
            constexpr int per_word = 4 / T::bytes;
            x[i] = T::to_float(typename T::Storage(p.words[i / per_word] >> (i % per_word * 8 * T::bytes)));
        }
    }
}

// V neighbouring fp32 of shared memory.
template <int V>
TILEWISE_DEVICE void load_floats(SharedAddress from, float (&x)[V]) {
    if constexpr (V % 4 == 0) {
        TILEWISE_UNROLL
        for (int i = 0; i < V; i += 4) {
            float four[4];
            load_shared_float4(from + i * 4, four);
            TILEWISE_UNROLL
            for (int j = 0; j < 4; ++j) x[i + j] = four[j];
        }
    } else if constexpr (V == 2) {
        load_shared_float2(from, x[0], x[1]);
    } else {
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) x[i] = load_shared_float(from + i * 4);
    }
}
template <int V>
TILEWISE_DEVICE void store_floats(SharedAddress to, const float (&x)[V]) {
    if constexpr (V % 2 == 0) {
        TILEWISE_UNROLL
        for (int i = 0; i < V; i += 2) store_shared_float2(to + i * 4, x[i], x[i + 1]);
    } else {
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) store_shared_float(to + i * 4, x[i]);
    }
}

// A patch's line of inputs, on its way from memory.
template <class T, int V, class Columns>
struct InputLine {
    Packet<V * T::bytes> values[Columns::kInputs];

    // Bit i of the mask: input i is inside the image.
    static TILEWISE_DEVICE u32 mask(int origin, int size) {
        u32 inside = 0;
        TILEWISE_UNROLL
        for (int i = 0; i < Columns::kInputs; ++i) inside |= u32(origin + i) < u32(size) ? 1u << i : 0u;
        return inside;
    }
    static_assert(Columns::kInputs <= 32, "a line has a mask of 32 bits");

    // `from` is where input 0 is or would be; inputs are `step` bytes apart.
    TILEWISE_DEVICE void load(const void* from, Index step, u32 inside) {
        const char* at = static_cast<const char*>(from);
        TILEWISE_UNROLL
        for (int i = 0; i < Columns::kInputs; ++i, at += step) {
            values[i] = zero_packet<V * T::bytes>();
            if (Columns::is_used(i) && (inside >> i & 1u)) values[i] = load_global<V * T::bytes>(at);
        }
    }
    TILEWISE_DEVICE void unpack(float (&x)[Columns::kInputs][V]) const {
        TILEWISE_UNROLL
        for (int i = 0; i < Columns::kInputs; ++i) {
            if (Columns::is_used(i)) unpack_values<T, V>(values[i], x[i]);
        }
    }
};

}  // namespace tilewise::gpu
