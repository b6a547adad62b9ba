// SPDX-License-Identifier: MIT
// How a convolution walks over its pixels. Forward, position j of the output reads the input at j * stride - pad + t *
// dilation for each tap t. Backward data is made of such walks too: the input pixels r, r + s, r + 2s, … of one residue
// class (s the stride) all meet the same taps, every gcd-th of the filter, and read dy without a stride. So kernels know
// one kind of walk: positions, the taps they meet, and where these lead. Dimensions are outermost first. Shared by the kernels
// of all backends and by the host, which counts their blocks.
#pragma once
#include "args.hpp"

namespace tilewise {

constexpr Index least_index(Index a, Index b) { return a < b ? a : b; }

struct TapRange {
    Index begin, end;
};

// Position j (of count) stands for pixel out_first + j * out_step of the tensor that is walked over, and with tap i (of
// taps) it meets pixel j * in_step + in_first + i * tap_shift of the tensor that is read, which has in_size; what lies
// outside is zero. Tap i is number tap_first + i * tap_step of the filter.
struct WalkDim {
    Index count, out_first, out_step;
    Index in_step, in_first, in_size;
    Index taps, tap_first, tap_step, tap_shift;

    // The taps of position j that lie inside: consecutive ones, since the shift is the same for all.
    constexpr TapRange inside(Index j) const {
        const Index at = j * in_step + in_first;
        Index low, high;  // i * |tap_shift| from low to high
        if (tap_shift > 0) {
            low = -at, high = in_size - 1 - at;
        } else {
            low = at - in_size + 1, high = at;
        }
        const Index shift = tap_shift > 0 ? tap_shift : -tap_shift;
        if (high < 0) return {0, 0};
        const Index begin = low <= 0 ? 0 : (low + shift - 1) / shift;
        const Index end = least_index(high / shift + 1, taps);
        return begin < end ? TapRange{begin, end} : TapRange{0, 0};
    }
};

struct Walk {
    WalkDim dim[kMaxKernelDims];
    Index in_pixels;  // of one image of the tensor that is read
    Index out_size[kMaxKernelDims];

    constexpr Index positions() const { return dim[0].count * dim[1].count * dim[2].count; }  // of one image
    constexpr Index taps() const { return dim[0].taps * dim[1].taps * dim[2].taps; }
    // The pixel that a position stands for.
    constexpr Index out_pixel(Index j0, Index j1, Index j2) const {
        const Index y = dim[0].out_first + j0 * dim[0].out_step, x = dim[1].out_first + j1 * dim[1].out_step;
        return (y * out_size[1] + x) * out_size[2] + dim[2].out_first + j2 * dim[2].out_step;
    }
};

// The walk of the forward pass, over the pixels of y; backward weight takes the same.
constexpr Walk forward_walk(const KernelConv& conv) {
    Walk walk = {};
    walk.in_pixels = 1;
    for (int d = 0; d < kMaxKernelDims; ++d) {
        walk.dim[d] = {conv.out[d],    0, 1, conv.stride[d],  -conv.pad[d], conv.in[d],
                       conv.filter[d], 0, 1, conv.dilation[d]};
        walk.in_pixels *= conv.in[d];
        walk.out_size[d] = conv.out[d];
    }
    return walk;
}

// From pixel to pixel of a residue class of backward data. With one output the stride says nothing: all pixels are of one class.
constexpr Index class_stride(const KernelConv& conv, int d) { return conv.out[d] == 1 ? 1 : conv.stride[d]; }
// Classes; one that no pixel belongs to does not count.
constexpr Index classes_along(const KernelConv& conv, int d) { return least_index(class_stride(conv, d), conv.in[d]); }
constexpr Index class_count(const KernelConv& conv) {
    return classes_along(conv, 0) * classes_along(conv, 1) * classes_along(conv, 2);
}

constexpr Index common_divisor(Index a, Index b) {
    while (b != 0) {
        const Index rest = a % b;
        a = b, b = rest;
    }
    return a;
}

// Input pixels i = r + s * j; tap t leads to (i + pad - t * dilation) / s, where that is whole.
constexpr WalkDim backward_dim(const KernelConv& conv, int d, Index r) {
    const Index s = class_stride(conv, d), dilation = conv.dilation[d], at = r + conv.pad[d];
    const Index common = common_divisor(s, dilation), step = s / common;
    WalkDim dim = {(conv.in[d] - r + s - 1) / s, r, s, 1, 0, conv.out[d], 0, 0, step, -(dilation / common)};
    const Index most = least_index(step, conv.filter[d]);
    while (dim.tap_first < most && (at - dim.tap_first * dilation) % s != 0) ++dim.tap_first;
    if (dim.tap_first >= most) return dim;  // no tap leads from here to any output
    dim.taps = (conv.filter[d] - dim.tap_first + step - 1) / step;
    dim.in_first = (at - dim.tap_first * dilation) / s;
    return dim;
}

// The walk of one class, over pixels of x; reads y.
constexpr Walk backward_walk(const KernelConv& conv, Index index) {
    Walk walk = {};
    walk.in_pixels = 1;
    for (int d = kMaxKernelDims - 1; d >= 0; --d) {
        const Index classes = classes_along(conv, d);
        walk.dim[d] = backward_dim(conv, d, index % classes);
        index /= classes;
        walk.in_pixels *= conv.out[d];
        walk.out_size[d] = conv.in[d];
    }
    return walk;
}

// One output channel has so many weights: taps x channels.
constexpr Index weights_per_filter(const KernelConv& conv) {
    return conv.filter[0] * conv.filter[1] * conv.filter[2] * conv.c;
}

}  // namespace tilewise
