// SPDX-License-Identifier: MIT
// The geometry of convolutions that stage a patch of their input in shared memory (gather=halo): which positions a tile of
// output pixels reads, how they lie in shared memory, and which taps belong together. The host chooses the tile with it
// and the kernels find their way (gpu/patch.hpp): one truth for both.
//
// Per axis, output q of a class of outputs reads position q * in_step + offset(tap) of the staged tensor:
//   forward, backward weight  staged x, one class, in_step = stride, offset = tap * dilation - pad
//   backward data             staged dy, a class for every residue of the input position modulo the stride (output q of class r is
//                             input q * stride + r), in_step = 1; every tap belongs to one class
#pragma once
#include "to_int.hpp"

namespace tilewise {

constexpr int patch_divide_up(int value, int by) {
    if (by == 1) return value;  // the usual case, without a division on the device
    return value > 0 ? (value + by - 1) / by : -(-value / by);
}

constexpr int patch_gcd(int a, int b) {
    while (b != 0) {
        const int rest = a % b;
        a = b, b = rest;
    }
    return a;
}

struct PatchAxis {
    int inputs, outputs;      // positions of the staged tensor, and of the one computed
    int in_step, classes;     // classes: also from output to output of a class
    int taps, dilation, pad;  // of the filter
    int period;               // from tap to tap of a class
    int reversed;             // taps run against the staged positions: backward data
    int first, span;          // output q reads `span` positions from q * in_step + first on, all classes taken together

    constexpr int class_of(int tap) const {
        if (classes == 1) return 0;
        const int rest = (tap * dilation - pad) % classes;
        return rest < 0 ? rest + classes : rest;
    }
    // From q * in_step + first.
    constexpr int offset_of(int tap) const {
        return reversed != 0 ? patch_divide_up(pad - tap * dilation, classes) - first : tap * dilation;
    }
    // The taps of a tap's class, and its place among them.
    constexpr int class_taps(int tap) const { return period == 1 ? taps : (taps - tap % period + period - 1) / period; }
    constexpr int place_of(int tap) const { return period == 1 ? tap : tap / period; }
    constexpr int taps_of_class(int which) const {
        for (int tap = 0; tap < period && tap < taps; ++tap) {
            if (class_of(tap) == which) return class_taps(tap);
        }
        return 0;
    }
    constexpr int class_outputs() const { return (outputs + classes - 1) / classes; }  // of the first, which has most
};

constexpr PatchAxis patch_axis(const KernelConv& conv, int d, bool backward_data) {
    PatchAxis a{};
    const int stride = to_int(conv.stride[d]);
    a.inputs = to_int(backward_data ? conv.out[d] : conv.in[d]);
    a.outputs = to_int(backward_data ? conv.in[d] : conv.out[d]);
    a.in_step = backward_data ? 1 : stride;
    a.classes = backward_data ? stride : 1;
    a.taps = to_int(conv.filter[d]), a.dilation = to_int(conv.dilation[d]), a.pad = to_int(conv.pad[d]);
    a.period = backward_data ? stride / patch_gcd(stride, a.dilation) : 1;
    a.reversed = backward_data ? 1 : 0;
    const int reach = (a.taps - 1) * a.dilation;
    a.first = backward_data ? patch_divide_up(a.pad - reach, stride) : -a.pad;
    a.span = backward_data ? patch_divide_up(a.pad, stride) - a.first + 1 : reach + 1;
    return a;
}

// A tile of output pixels: so many images, and of each a box of pixels (of one class). Its rows count through the box, columns
// fastest, then through the images.
struct PatchTile {
    int images;
    int extent[kMaxKernelDims];

    constexpr int rows() const { return images * extent[0] * extent[1] * extent[2]; }
};

// The patch of staged pixels that such a tile reads. Where the step is not 1, columns are kept by their residue, so that
// neighbouring outputs always read neighbouring pixels: the residues of a line one after the other, or (plane > 0) all lines of
// one residue after those of the other. A pixel is `pitch` bytes, an odd number of 16-byte chunks, so that
// eight neighbouring pixels fall on different banks.
struct PatchShape {
    int images, depth, height;
    int columns, phase;  // columns of the image, and stored ones of each residue
    int steps[kMaxKernelDims];
    int chunks, pitch;  // 16-byte chunks of a pixel's channels; bytes from pixel to pixel
    int plane;          // pixels from residue to residue; 0 where these are in one line

    constexpr int width() const { return plane > 0 ? phase : phase * steps[2]; }
    constexpr int pixels() const { return plane > 0 ? plane * steps[2] : images * depth * height * width(); }
    constexpr int bytes() const { return pixels() * pitch; }
    // The first pixel that an output of the tile reads, and how far from it a tap's pixel is (offsets by PatchAxis).
    constexpr int pixel_of(int image, int d, int h, int w) const {
        return ((image * depth + d * steps[0]) * height + h * steps[1]) * width() + w;
    }
    constexpr int tap_distance(int d, int h, int w) const {
        return (d * height + h) * width() + w % steps[2] * (plane > 0 ? plane : phase) + w / steps[2];
    }
};

inline constexpr int kPatchChunkBytes = 16;

constexpr PatchShape patch_shape(const PatchAxis (&axes)[kMaxKernelDims], const PatchTile& tile, int chunks) {
    PatchShape p{};
    int extent[kMaxKernelDims] = {};
    for (int d = 0; d < kMaxKernelDims; ++d) {
        extent[d] = (tile.extent[d] - 1) * axes[d].in_step + axes[d].span;
        p.steps[d] = axes[d].in_step;
    }
    p.images = tile.images, p.depth = extent[0], p.height = extent[1], p.columns = extent[2];
    p.phase = (p.columns + p.steps[2] - 1) / p.steps[2];
    p.chunks = chunks;
    p.pitch = (chunks | 1) * kPatchChunkBytes;
    return p;
}

// Pixels of at most four channels take eight bytes each, so that two neighbours are a chunk (PatchShape::chunks == 0).
inline constexpr int kFewChannels = 4, kFewChannelBytes = 8;

// Coordinates within a tile or patch are packed into one word, each field with a bit above it that catches a borrow, so that
// all four are compared with bounds at once. These are the fields' widths: no tile or patch is longer.
inline constexpr int kPatchImageBits = 5, kPatchDepthBits = 5, kPatchHeightBits = 8, kPatchColumnBits = 10;

constexpr bool fits_patch_fields(int images, int depth, int height, int columns) {
    return images < 1 << kPatchImageBits && depth < 1 << kPatchDepthBits && height < 1 << kPatchHeightBits &&
           columns < 1 << kPatchColumnBits;
}

}  // namespace tilewise
