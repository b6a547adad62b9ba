// SPDX-License-Identifier: MIT
// How the second kernel of backward data by columns (gpu/reduce_columns.hpp) finds the sums of an element of dx: the first
// kernel has left [pixel of dy][tap][channel], and an element adds up those of the taps that meet its pixel. The host works these numbers
// out and hands them over in KernelArgs::family_words. The walk over the taps compiles on the host, too, and is tested there.
#pragma once
#include "conv_walk.hpp"
#include "launch_divisor.hpp"
#include "to_int.hpp"

namespace tilewise {

// One dimension. Tap t of pixel x leads to pixel (x + pad - t * dilation) / stride of dy, where that is whole and inside: every
// tap_step-th tap from the first one on, each out_step pixels before the last.
struct Col2imAxis {
    LaunchDivisor in;  // pixels of dx
    LaunchDivisor stride, out_step, tap_step;
    int out, filter, pad, dilation;
    int out_elements, tap_elements;  // from pixel to pixel of dy, and from tap to tap
    int step_elements;               // from tap to tap of those that meet a pixel
};

struct Col2imConvArgs {
    Col2imAxis axes[kMaxKernelDims];
    LaunchDivisor channel_runs;  // of a pixel of dx: runs of `vector` channels
    int vector;
    int image_elements;  // sums of an image
};

inline constexpr int kColumnRun = 4;  // channels of a run, where they are whole ones
// The most sums in a part: a walk may go one step beyond them in 32 bits.
inline constexpr Index kMostCol2imSums = Index{1} << 30;

constexpr Col2imConvArgs col2im_conv_args(const KernelConv& conv) {
    Col2imConvArgs args{};
    args.vector = conv.c % kColumnRun == 0 ? kColumnRun : 1;
    args.channel_runs = LaunchDivisor(static_cast<unsigned>(to_int(conv.c / args.vector)));
    Index out_elements = weights_per_filter(conv), tap_elements = conv.c;
    for (int d = kMaxKernelDims - 1; d >= 0; --d) {
        Col2imAxis& axis = args.axes[d];
        const Index common = common_divisor(conv.stride[d], conv.dilation[d]);
        const Index out_step = conv.dilation[d] / common, tap_step = conv.stride[d] / common;
        axis.in = LaunchDivisor(static_cast<unsigned>(to_int(conv.in[d])));
        axis.stride = LaunchDivisor(static_cast<unsigned>(to_int(conv.stride[d])));
        axis.out_step = LaunchDivisor(static_cast<unsigned>(to_int(out_step)));
        axis.tap_step = LaunchDivisor(static_cast<unsigned>(to_int(tap_step)));
        axis.out = to_int(conv.out[d]), axis.filter = to_int(conv.filter[d]);
        axis.pad = to_int(conv.pad[d]), axis.dilation = to_int(conv.dilation[d]);
        axis.out_elements = to_int(out_elements), axis.tap_elements = to_int(tap_elements);
        // A pixel meets two taps only where both steps stay inside.
        const bool has_steps = out_step < conv.out[d] && tap_step < conv.filter[d];
        axis.step_elements = has_steps ? to_int(tap_step * tap_elements - out_step * out_elements) : 0;
        out_elements *= conv.out[d], tap_elements *= conv.filter[d];
    }
    args.image_elements = to_int(out_elements);
    return args;
}

// The taps of one dimension that meet a pixel: the sum of the first one, and how many there are.
struct MetTaps {
    int at, count;
};
constexpr MetTaps met_taps(const Col2imAxis& axis, int pixel) {
    const int tap_step = static_cast<int>(axis.tap_step.divisor), out_step = static_cast<int>(axis.out_step.divisor);
    const int most = tap_step < axis.filter ? tap_step : axis.filter;
    int tap = 0, place = pixel + axis.pad, out = axis.stride.quotient(place);
    while (out * static_cast<int>(axis.stride.divisor) != place) {
        place -= axis.dilation;
        if (++tap == most || place < 0) return {0, 0};
        out = axis.stride.quotient(place);
    }
    const int taps = axis.tap_step.quotient(axis.filter - 1 - tap) + 1, outs = axis.out_step.quotient(out) + 1;
    const int end = taps < outs ? taps : outs;
    // The first ones may lead beyond the last pixel.
    const int begin = out < axis.out ? 0 : axis.out_step.quotient(out - axis.out + out_step);
    if (begin >= end) return {0, 0};
    return {(out - begin * out_step) * axis.out_elements + (tap + begin * tap_step) * axis.tap_elements, end - begin};
}

// The sums of the first channel of a pixel of dx, tap by tap, the innermost dimension fastest. Going on after the last one does no harm.
template <int ndim>
struct ColumnWalk {
    static constexpr int kFirst = kMaxKernelDims - ndim;

    int at = 0;     // the next sum
    int count = 1;  // of all of them
    int counts[kMaxKernelDims] = {1, 1, 1}, done[kMaxKernelDims] = {}, steps[kMaxKernelDims] = {};

    // `pixel` counts through all images.
    constexpr ColumnWalk(const Col2imConvArgs& args, int pixel) {
        for (int d = kMaxKernelDims - 1; d >= kFirst; --d) {
            const Col2imAxis& axis = args.axes[d];
            const int line = axis.in.quotient(pixel);
            const MetTaps met = met_taps(axis, pixel - line * static_cast<int>(axis.in.divisor));
            at += met.at, count *= met.count;
            counts[d] = met.count, steps[d] = axis.step_elements;
            pixel = line;
        }
        at += pixel * args.image_elements;
    }

    constexpr void next() {
        for (int d = kMaxKernelDims - 1; d >= kFirst; --d) {
            at += steps[d];
            if (++done[d] < counts[d]) return;
            at -= counts[d] * steps[d], done[d] = 0;
        }
    }
};

}  // namespace tilewise
