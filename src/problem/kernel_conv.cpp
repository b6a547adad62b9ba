// SPDX-License-Identifier: MIT
#include "problem/kernel_conv.hpp"

#include "base/rounding.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

KernelActivation activation(const Problem& p, Index channels, Index pixels) {
    const Index all = channels * p.conv.g;
    if (is_channels_last(p.layout) || pixels == 1) return {pixels * all, all, channels, 1};
    return {pixels * all, 1, pixels * channels, pixels};
}

}  // namespace

KernelConv kernel_conv(const Problem& p) {
    const ConvShape& s = p.conv;
    const Extents out = output_size(s);
    KernelConv conv{};
    conv.images = s.n, conv.groups = s.g, conv.c = whole_div(s.c, s.g), conv.k = whole_div(s.k, s.g);
    const int lacking = kMaxKernelDims - s.in.rank;
    Index in_pixels = 1, out_pixels = 1;
    for (int i = 0; i < kMaxKernelDims; ++i) {
        const int d = i - lacking;
        const auto extent = [&](const Extents& e) { return d < 0 ? 1 : e[d]; };
        conv.in[i] = extent(s.in), conv.out[i] = extent(out), conv.filter[i] = extent(s.filter);
        conv.stride[i] = extent(s.stride), conv.dilation[i] = extent(s.dilation);
        conv.pad[i] = d < 0 ? 0 : s.pad_before[d];
        in_pixels *= conv.in[i], out_pixels *= conv.out[i];
    }
    conv.x = activation(p, conv.c, in_pixels);
    conv.y = activation(p, conv.k, out_pixels);
    return conv;
}

}  // namespace tilewise
