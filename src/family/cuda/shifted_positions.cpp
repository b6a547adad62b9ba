// SPDX-License-Identifier: MIT
#include "family/cuda/shifted_positions.hpp"

#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {

TensorMapSpec walked_positions(const Problem& p, bool is_x, const TapWalk& walk) {
    const KernelConv conv = kernel_conv(p);
    const std::int64_t channels = is_x ? p.conv.c : p.conv.k, bytes = bytes_of(p.dtype_a);
    const auto& size = is_x ? conv.in : conv.out;
    TensorMapSpec map;
    map.dtype = p.dtype_a;
    map.size = {channels, size[0] * size[1] * size[2], p.conv.n};
    map.stride_bytes = {channels * bytes, map.size[1] * channels * bytes};
    Im2colSpec im2col;
    im2col.dims = p.conv.in.rank;
    for (int i = 0; i < im2col.dims; ++i) {  // innermost first
        const auto at = static_cast<std::size_t>(i), d = kMaxKernelDims - 1 - at;
        im2col.size[at] = size[d], im2col.step[at] = walk.step[d];
        im2col.lower[at] = -walk.before[d];
        im2col.upper[at] = im2col.lower[at] + (walk.extent[d] - 1) * walk.step[d] - (size[d] - 1);
    }
    map.im2col = im2col;
    return map;
}

}  // namespace tilewise
