// SPDX-License-Identifier: MIT
// The factors of a convolution for the kernel that judges results (reference.hpp), read where they lie. A, B and C are x, w, y forward,
// dy, w, dx backward data and dy, x, dw backward weight; depths count (tap, channel) in the first two, (image, output pixel) in the last.
// The index arithmetic is written down plainly, element by element, and shares nothing with the walks of the kernels it judges.
#pragma once
#include "reference.hpp"

namespace tilewise::gpu {

TILEWISE_DEVICE Index count_of(const Index (&extents)[kMaxKernelDims]) { return extents[0] * extents[1] * extents[2]; }

struct CheckPlace {
    Index at[kMaxKernelDims];
};

// The position that has this number when positions are counted with the last dimension running fastest.
TILEWISE_DEVICE CheckPlace place_of(Index number, const Index (&extents)[kMaxKernelDims]) {
    const Index line = quotient(number, extents[2]), plane = quotient(line, extents[1]);
    return {{plane, line - plane * extents[1], number - line * extents[2]}};
}

// The input pixel that an output pixel meets with a tap; negative where it lies in the padding.
TILEWISE_DEVICE Index input_of(const KernelConv& conv, const CheckPlace& output, const CheckPlace& tap) {
    Index pixel = 0;
    TILEWISE_UNROLL
    for (int d = 0; d < kMaxKernelDims; ++d) {
        const Index at = output.at[d] * conv.stride[d] + tap.at[d] * conv.dilation[d] - conv.pad[d];
        if (at < 0 || at >= conv.in[d]) return -1;
        pixel = pixel * conv.in[d] + at;
    }
    return pixel;
}

// The output pixel that meets an input pixel with a tap; negative where none does.
TILEWISE_DEVICE Index output_of(const KernelConv& conv, const CheckPlace& input, const CheckPlace& tap) {
    Index pixel = 0;
    TILEWISE_UNROLL
    for (int d = 0; d < kMaxKernelDims; ++d) {
        const Index reach = input.at[d] + conv.pad[d] - tap.at[d] * conv.dilation[d];
        const Index at = reach < 0 ? 0 : quotient(reach, conv.stride[d]);
        if (reach < 0 || at * conv.stride[d] != reach || at >= conv.out[d]) return -1;
        pixel = pixel * conv.out[d] + at;
    }
    return pixel;
}

TILEWISE_DEVICE Index element_of(const KernelActivation& of, Index image, Index pixel, Index group, Index channel) {
    return image * of.image_stride + pixel * of.pixel_stride + group * of.group_stride + channel * of.channel_stride;
}

// Lines of every operand know this.
struct ConvLines {
    const KernelConv* conv;
    const void* data;
    KernelDType type;
    Index group, first;  // the first line
    Index lines, depths;
};

// Rows are pixels of the output, or of the input backward data; depths are taps with their channels.
template <bool is_forward>
struct PixelRows : ConvLines {
    TILEWISE_DEVICE const KernelActivation& activation() const { return is_forward ? conv->x : conv->y; }
    TILEWISE_DEVICE bool along_depth() const { return activation().is_channels_last(); }
    TILEWISE_DEVICE Index at(Index line, Index depth) const {
        const auto& pixels = is_forward ? conv->out : conv->in;
        const Index channels = is_forward ? conv->c : conv->k, row = first + line;
        const Index image = quotient(row, count_of(pixels)), tap = quotient(depth, channels);
        const CheckPlace own = place_of(row - image * count_of(pixels), pixels), filter = place_of(tap, conv->filter);
        const Index pixel = is_forward ? input_of(*conv, own, filter) : output_of(*conv, own, filter);
        return pixel < 0 ? -1 : element_of(activation(), image, pixel, group, depth - tap * channels);
    }
};

// Columns are channels of the result. Weights are [group][k][tap][c].
template <bool is_forward>
struct WeightColumns : ConvLines {
    TILEWISE_DEVICE bool along_depth() const { return is_forward; }
    TILEWISE_DEVICE Index at(Index line, Index depth) const {
        const Index taps = count_of(conv->filter), channel = first + line;
        const Index per_tap = is_forward ? conv->c : conv->k, tap = quotient(depth, per_tap),
                    other = depth - tap * per_tap;
        const Index k = is_forward ? channel : other, c = is_forward ? other : channel;
        return ((group * conv->k + k) * taps + tap) * conv->c + c;
    }
};

// Rows are channels of dy, depths its pixels.
struct GradientRows : ConvLines {
    TILEWISE_DEVICE bool along_depth() const { return !conv->y.is_channels_last(); }
    TILEWISE_DEVICE Index at(Index line, Index depth) const {
        const Index image = quotient(depth, count_of(conv->out));
        return element_of(conv->y, image, depth - image * count_of(conv->out), group, first + line);
    }
};

// Columns are taps with the channels of x, depths the pixels of dy.
struct TapColumns : ConvLines {
    TILEWISE_DEVICE bool along_depth() const { return !conv->x.is_channels_last(); }
    TILEWISE_DEVICE Index at(Index line, Index depth) const {
        const Index col = first + line, tap = quotient(col, conv->c), image = quotient(depth, count_of(conv->out));
        const CheckPlace output = place_of(depth - image * count_of(conv->out), conv->out);
        const Index pixel = input_of(*conv, output, place_of(tap, conv->filter));
        return pixel < 0 ? -1 : element_of(conv->x, image, pixel, group, col - tap * conv->c);
    }
};

template <class A, class B>
struct ConvOperands {
    static TILEWISE_DEVICE A a(const KernelArgs& args, KernelDType type, Index group, Index row) {
        return {{&args.conv, args.a.data, type, group, row, args.m - row, args.k}};
    }
    static TILEWISE_DEVICE B b(const KernelArgs& args, KernelDType type, Index group, Index col) {
        return {{&args.conv, args.b.data, type, group, col, args.n - col, args.k}};
    }
};
using ForwardOperands = ConvOperands<PixelRows<true>, WeightColumns<true>>;
using BackwardDataOperands = ConvOperands<PixelRows<false>, WeightColumns<false>>;
using BackwardWeightOperands = ConvOperands<GradientRows, TapColumns>;

}  // namespace tilewise::gpu
