// SPDX-License-Identifier: MIT
// How depthwise kernels on matrix units cut up their work (depthwise_band.hpp, band_weight.hpp). A strip is a column of blocks of 8
// outputs of one image; the 16 strips of a block are neighbours along the width first, then those of further images. At a time
// a block has one line of pixels of its images in shared memory, with what the filter needs on both sides: first as it lies in
// memory, [pixel][16 channels], then turned around to [channel][pixel], where 8 pixels of a strip are a row of 16 bytes.
#pragma once
#include "../common/depthwise_launch.hpp"
#include "primitives.hpp"

namespace tilewise::cuda {

struct BandShape {
    static constexpr int kChannels = 16, kWarps = 8, kThreads = kWarps * 32,
                         kOwn = kChannels / kWarps;                 // channels of a warp
    static constexpr int kStrips = 16, kOutputs = 8, kInputs = 16;  // of a product: rows, columns, depth
    static constexpr int kBytes = 2, kPixelBytes = kChannels * kBytes, kMostPixels = 256;
    static constexpr int kRawBytes = kMostPixels * kPixelBytes;
    // 16 bytes more than whole turns of the banks: 8 channels' 16 bytes lie side by side in them.
    static constexpr int kPlanePitch = (kMostPixels + kOutputs) * kBytes, kPlaneBytes = kChannels * kPlanePitch;
    static constexpr int kRowPitch = kStrips * kOutputs * kBytes + 16, kRowBytes = kChannels * kRowPitch;
    static_assert(kPlanePitch % 128 == 16 && kRowPitch % 128 == 16);
};

// The strips of a block.
struct BandStrips {
    const DepthwiseLaunch& launch;
    int across, images;             // strips side by side, and images
    int pitch;                      // pixels of a line from image to image
    int first_image, first_column;  // of the outputs

    TILEWISE_DEVICE BandStrips(const DepthwiseLaunch& from, int tile)
        : launch(from), across(int(launch.across.divisor)), images(launch.frames), pitch(int(launch.pitch.divisor)) {
        const int image = launch.column_tiles.quotient(tile);
        first_image = image * images;
        first_column = (tile - image * int(launch.column_tiles.divisor)) * across * BandShape::kOutputs;
    }
    TILEWISE_DEVICE int image_of_pixel(int pixel) const { return launch.pitch.small_quotient(pixel); }
    TILEWISE_DEVICE int image_of_strip(int strip) const { return launch.across.small_quotient(strip); }
    // The pixel of a line where a strip begins; strips past the last are the first.
    TILEWISE_DEVICE int pixel(int strip) const {
        const int image = image_of_strip(strip);
        return image < images ? image * pitch + (strip - image * across) * BandShape::kOutputs : 0;
    }
};

// Lines of pixels on their way from memory to [channel][pixel], one after the other.
struct BandLines {
    static constexpr int kCopies = BandShape::kMostPixels * 2 / BandShape::kThreads;  // of a thread, 16 bytes each
    static constexpr int kRoundPixels = BandShape::kWarps * 16, kRounds = BandShape::kMostPixels / kRoundPixels;
    static_assert(kRounds == 2);
    const char* from[kCopies];         // of the next line
    SharedAddress line_step;           // bytes
    SharedAddress to;                  // of the first in a buffer
    SharedAddress lane_from, lane_to;  // of this lane in 16 pixels, before and after they are turned around
    SharedAddress rounds;              // in which this warp turns pixels around
    u32 inside;                        // bits

    // Two halves of 8 pixels share their banks unless those of every other 4 pixels change places.
    static TILEWISE_DEVICE int raw_offset(int pixel, int half) {
        return pixel * BandShape::kPixelBytes + ((half ^ (pixel >> 2)) & 1) * 16;
    }

    // From `first_line` on, which may lie outside; lines have `width` pixels and begin `shift` ahead of the strips.
    TILEWISE_DEVICE BandLines(const void* data, const KernelActivation& t, int width, int first_line, int shift,
                              const KernelConv& conv, const BandStrips& strips, int first_channel)
        : line_step(SharedAddress(width * int(t.pixel_stride) * BandShape::kBytes)), inside(0) {
        const int left = strips.images * strips.pitch - thread_index() / 32 * 16;
        rounds = left <= 0 ? 0 : left <= kRoundPixels ? 1 : kRounds;
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const int chunk = thread_index() + i * BandShape::kThreads, pixel = chunk / 2, half = chunk % 2;
            const int image = strips.image_of_pixel(pixel);
            const int column = strips.first_column - shift + pixel - image * strips.pitch;
            const bool has = image < strips.images && strips.first_image + image < int(conv.images) &&
                             u32(column) < u32(width) && first_channel + half * 8 < int(conv.groups);
            const int offset = (first_line * width + column) * int(t.pixel_stride) + first_channel + half * 8;
            const Index at = Index(strips.first_image + image) * int(t.image_stride) + offset;
            from[i] = static_cast<const char*>(data) + at * BandShape::kBytes;
            inside |= has ? 1u << i : 0u;
        }
        to = raw_offset(thread_index() / 2, thread_index() % 2);
        const int lane = lane_index(), quarter = lane / 8, first = thread_index() / 32 * 16;
        lane_from = raw_offset(first + (quarter & 1) * 8 + lane % 8, quarter >> 1);
        lane_to = lane / 4 * BandShape::kPlanePitch + (first + lane % 4 * 2) * BandShape::kBytes;
        hide(line_step), hide(to), hide(lane_from), hide(lane_to), hide(rounds);
    }
    // The next line, or zeros where it is outside.
    TILEWISE_DEVICE void copy(SharedAddress raw, bool has_line) {
        constexpr int apart =
            BandShape::kThreads / 2 * BandShape::kPixelBytes;  // 128 pixels: the same place in the banks
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            copy_async<16>(raw + to + i * apart, from[i], has_line && (inside >> i & 1u) != 0 ? 16 : 0);
            from[i] += line_step;
        }
    }
    // Warps take turns at 16 pixels.
    TILEWISE_DEVICE void turn(SharedAddress raw, SharedAddress plane) const {
        const SharedAddress from_raw = raw + lane_from, to_plane = plane + lane_to;
        TILEWISE_UNROLL
        for (int i = 0; i < kRounds; ++i) {
            if (rounds <= SharedAddress(i)) break;  // the same for the warp
            u32 words[4];
            load_matrices<true>(from_raw + i * kRoundPixels * BandShape::kPixelBytes, words);
            TILEWISE_UNROLL
            for (int j = 0; j < 4; ++j) {
                const int place = (j >> 1) * 8 * BandShape::kPlanePitch + (j & 1) * 16;
                store_shared<4>(to_plane + i * kRoundPixels * BandShape::kBytes + place, Packet<4>{{words[j]}});
            }
        }
    }
};

// The buffer after this one in a ring of `stages`.
template <int stages>
TILEWISE_DEVICE SharedAddress next_raw(SharedAddress offset) {
    static_assert((stages & (stages - 1)) == 0);
    return (offset + BandShape::kRawBytes) & (stages * BandShape::kRawBytes - 1);
}

}  // namespace tilewise::cuda
