// SPDX-License-Identifier: MIT
// How depthwise kernels on matrix units cut up their work (toeplitz_conv.hpp, toeplitz_wgrad.hpp). A strip is a column of blocks of 8
// outputs of one image; the 16 strips of a block are neighbours along the width first, then those of further images. At a time
// a block has one line of pixels of its images in shared memory, with what the filter needs on both sides: first as it lies in
// memory, [pixel][16 channels], then turned around to [channel][pixel], where 8 pixels of a strip are a row of 16 bytes.
#pragma once
#include "../../common/depthwise_tiles_args.hpp"
#include "../matrix_places.hpp"

namespace tilewise::cuda::depthwise_toeplitz {

struct ToeplitzShape {
    static constexpr int kChannels = 16, kWarps = 8, kThreads = kWarps * 32,
                         kOwn = kChannels / kWarps;                 // channels of a warp
    static constexpr int kStrips = 16, kOutputs = 8, kInputs = 16;  // of a product: rows, columns, depth
    static constexpr int kBytes = 2, kPixelBytes = kChannels * kBytes, kMostPixels = 256;
    static constexpr int kRawBytes = kMostPixels * kPixelBytes;
    static constexpr int kRowPitch = kStrips * kOutputs * kBytes + 16, kRowBytes = kChannels * kRowPitch;
    static_assert(kRowPitch % 128 == 16);
};

// The strips of a block.
struct ToeplitzStrips {
    const DepthwiseTilesArgs& launch;
    int across, images;             // strips side by side, and images
    int pitch;                      // pixels of a line from image to image
    int first_image, first_column;  // of the outputs

    TILEWISE_DEVICE ToeplitzStrips(const DepthwiseTilesArgs& from, int tile)
        : launch(from), across(int(launch.across.divisor)), images(launch.frames), pitch(int(launch.pitch.divisor)) {
        const int image = launch.column_tiles.quotient(tile);
        first_image = image * images;
        first_column = (tile - image * int(launch.column_tiles.divisor)) * across * ToeplitzShape::kOutputs;
    }
    TILEWISE_DEVICE int image_of_pixel(int pixel) const { return launch.pitch.small_quotient(pixel); }
    TILEWISE_DEVICE int image_of_strip(int strip) const { return launch.across.small_quotient(strip); }
    // The pixel of a line where a strip begins; strips past the last are the first.
    TILEWISE_DEVICE int pixel(int strip) const {
        const int image = image_of_strip(strip);
        return image < images ? image * pitch + (strip - image * across) * ToeplitzShape::kOutputs : 0;
    }
};

// Lines of pixels on their way from memory to [channel][pixel], one after the other: those that the strips meet, or, of half the
// length, those of the outputs, 8 for each strip.
template <bool meets>
struct ToeplitzLines {
    static constexpr int kRoundPixels = ToeplitzShape::kWarps * 16, kRounds = meets ? 2 : 1;
    static constexpr int kPixels = kRounds * kRoundPixels,
                         kCopies = kPixels * 2 / ToeplitzShape::kThreads;  // 16 bytes each
    static constexpr int kRawBytes = kPixels * ToeplitzShape::kPixelBytes;
    // 16 bytes more than whole turns of the banks: 8 channels' 16 bytes lie side by side in them.
    static constexpr int kPitch = (kPixels + ToeplitzShape::kOutputs) * ToeplitzShape::kBytes,
                         kPlaneBytes = ToeplitzShape::kChannels * kPitch;
    static_assert(kPitch % 128 == 16 && (!meets || kPixels == ToeplitzShape::kMostPixels));
    const char* from[kCopies];                     // of the next line
    SharedAddress line_step;                       // bytes
    SharedAddress to;                              // of the first in a buffer
    SharedAddress lane_from;                       // of this lane in 16 pixels, before they are turned around
    MatrixPlaces<kPitch, 16, 8 * kPitch> lane_to;  // and after: 8 channels of twice 8 pixels, then 8 more
    SharedAddress rounds;                          // in which this warp turns pixels around
    u32 inside;                                    // bits

    // Two halves of 8 pixels share their banks unless those of every other 4 pixels change places.
    static TILEWISE_DEVICE int raw_offset(int pixel, int half) {
        return pixel * ToeplitzShape::kPixelBytes + ((half ^ (pixel >> 2)) & 1) * 16;
    }

    // From `first_line` on, which may lie outside; lines have `width` pixels and begin `shift` ahead of the strips.
    TILEWISE_DEVICE ToeplitzLines(const void* data, const KernelActivation& t, int width, int first_line, int shift,
                                  const KernelConv& conv, const ToeplitzStrips& strips, int first_channel)
        : line_step(SharedAddress(width * int(t.pixel_stride) * ToeplitzShape::kBytes)),
          lane_to(SharedAddress(thread_index() / 32 * 16 * ToeplitzShape::kBytes)),
          inside(0) {
        const int left = strips.images * strips.pitch - thread_index() / 32 * 16;
        rounds = !meets ? 1 : left <= 0 ? 0 : left <= kRoundPixels ? 1 : kRounds;
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const int chunk = thread_index() + i * ToeplitzShape::kThreads, pixel = chunk / 2, half = chunk % 2;
            const int image =
                meets ? strips.image_of_pixel(pixel) : strips.image_of_strip(pixel / ToeplitzShape::kOutputs);
            const int pitch = meets ? strips.pitch : strips.across * ToeplitzShape::kOutputs;
            const int column = strips.first_column - shift + pixel - image * pitch;
            const bool has = image < strips.images && strips.first_image + image < int(conv.images) &&
                             u32(column) < u32(width) && first_channel + half * 8 < int(conv.groups);
            const int offset = (first_line * width + column) * int(t.pixel_stride) + first_channel + half * 8;
            const Index at = Index(strips.first_image + image) * int(t.image_stride) + offset;
            from[i] = static_cast<const char*>(data) + at * ToeplitzShape::kBytes;
            inside |= has ? 1u << i : 0u;
        }
        to = raw_offset(thread_index() / 2, thread_index() % 2);
        const int lane = lane_index(), quarter = lane / 8, first = thread_index() / 32 * 16;
        lane_from = raw_offset(first + (quarter & 1) * 8 + lane % 8, quarter >> 1);
        hide(line_step), hide(to), hide(lane_from), hide(rounds);
    }
    // The next line, or zeros where it is outside. Places that never have a pixel are zeros already (clear_raw).
    TILEWISE_DEVICE void copy(SharedAddress raw, bool has_line) {
        constexpr int apart =
            ToeplitzShape::kThreads / 2 * ToeplitzShape::kPixelBytes;  // 128 pixels: the same place in the banks
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            if ((inside >> i & 1u) != 0) copy_async<16>(raw + to + i * apart, from[i], has_line ? 16 : 0);
            from[i] += line_step;
        }
    }
    // Warps take turns at 16 pixels. Those of a round are fetched, and put where they belong.
    TILEWISE_DEVICE void fetch(SharedAddress raw, int round, u32 (&words)[4]) const {
        load_matrices<true>(raw + lane_from + round * kRoundPixels * ToeplitzShape::kPixelBytes, words);
    }
    TILEWISE_DEVICE void put(SharedAddress plane, int round, const u32 (&words)[4]) const {
        lane_to.put(plane + round * kRoundPixels * ToeplitzShape::kBytes, words);
    }
    TILEWISE_DEVICE void turn(SharedAddress raw, SharedAddress plane, int first_round = 0) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kRounds; ++i) {
            if (i < first_round) continue;
            if (meets && rounds <= SharedAddress(i)) break;  // the same for the warp
            u32 words[4];
            fetch(raw, i, words);
            put(plane, i, words);
        }
    }
};

// Zeros in `bytes` of buffers, before anything is copied there; a barrier must follow.
template <int bytes>
TILEWISE_DEVICE void clear_raw(SharedAddress raw) {
    static_assert(bytes % (ToeplitzShape::kThreads * 16) == 0);
    TILEWISE_UNROLL
    for (int i = 0; i < bytes; i += ToeplitzShape::kThreads * 16)
        store_shared<16>(raw + i + thread_index() * 16, zero_packet<16>());
}

// The buffer after this one in a ring of `stages`.
template <int stages, int bytes = ToeplitzShape::kRawBytes>
TILEWISE_DEVICE SharedAddress next_raw(SharedAddress offset) {
    constexpr int all = stages * bytes;
    if constexpr ((all & (all - 1)) == 0) return (offset + bytes) & (all - 1);
    return offset == all - bytes ? 0 : offset + bytes;
}

}  // namespace tilewise::cuda::depthwise_toeplitz
