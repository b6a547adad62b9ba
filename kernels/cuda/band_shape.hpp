// SPDX-License-Identifier: MIT
// How depthwise kernels on matrix units cut up their work (depthwise_band.hpp, band_weight.hpp). A strip is a column of blocks of 8
// outputs of one image; the 16 strips of a block are neighbours along the width first, then those of further images. At a time
// a block has one line of pixels of its images in shared memory, with what the filter needs on both sides: first as it lies in
// memory, [pixel][16 channels], then turned around to [channel][pixel], where 8 pixels of a strip are a row of 16 bytes.
#pragma once
#include "primitives.hpp"

namespace tilewise::cuda {

struct BandShape {
    static constexpr int kChannels = 16, kWarps = 8, kThreads = kWarps * 32,
                         kOwn = kChannels / kWarps;                 // channels of a warp
    static constexpr int kStrips = 16, kOutputs = 8, kInputs = 16;  // of a product: rows, columns, depth
    static constexpr int kBytes = 2, kPixelBytes = kChannels * kBytes, kMostPixels = 256, kStages = 4;
    static constexpr int kRawBytes = kMostPixels * kPixelBytes;
    // 16 bytes more than whole turns of the banks: 8 channels' 16 bytes lie side by side in them.
    static constexpr int kPlanePitch = (kMostPixels + kOutputs) * kBytes, kPlaneBytes = kChannels * kPlanePitch;
    static constexpr int kRowPitch = kStrips * kOutputs * kBytes + 16, kRowBytes = kChannels * kRowPitch;
    static_assert(kPlanePitch % 128 == 16 && kRowPitch % 128 == 16);
};

// The strips of a block.
struct BandStrips {
    int across, images;             // strips side by side, and images
    int pitch;                      // pixels of a line from image to image
    int first_image, first_column;  // of the outputs

    TILEWISE_DEVICE int pixels() const { return images * pitch; }
    // The pixel of a line where a strip begins; strips past the last are the first.
    TILEWISE_DEVICE int pixel(int strip) const {
        const int image = strip / across;
        return image < images ? image * pitch + (strip - image * across) * BandShape::kOutputs : 0;
    }
};

// Strips side by side in a block for lines of `width` outputs: evenly divided among as few blocks as there must be.
TILEWISE_DEVICE constexpr int band_strips_across(int width) {
    const int strips = (width + BandShape::kOutputs - 1) / BandShape::kOutputs;
    const int blocks = (strips + BandShape::kStrips - 1) / BandShape::kStrips;
    return (strips + blocks - 1) / blocks;
}

// Lines of pixels on their way from memory to [channel][pixel].
struct BandLines {
    static constexpr int kCopies = BandShape::kMostPixels * 2 / BandShape::kThreads;  // of a thread, 16 bytes each
    const char* from[kCopies];                                                        // of line 0
    int valid[kCopies];                                                               // bytes to read: 16 or none
    Index line_step;                                                                  // bytes
    SharedAddress raw;                                                                // kStages buffers

    // `shift`: pixels ahead of the first output's that the line begins. Lines have `width` pixels.
    TILEWISE_DEVICE BandLines(const void* data, const KernelActivation& t, int width, int images, int channels,
                              int shift, const BandStrips& strips, int first_channel, SharedAddress buffers)
        : line_step(width * t.pixel_stride * BandShape::kBytes), raw(buffers) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const int chunk = thread_index() + i * BandShape::kThreads, pixel = chunk / 2, half = chunk % 2;
            const int image = pixel / strips.pitch, column = strips.first_column - shift + pixel - image * strips.pitch;
            const bool inside = image < strips.images && strips.first_image + image < images &&
                                u32(column) < u32(width) && first_channel + half * 8 < channels;
            valid[i] = inside ? 16 : 0;
            const Index at =
                (strips.first_image + image) * t.image_stride + column * t.pixel_stride + first_channel + half * 8;
            from[i] = static_cast<const char*>(data) + (inside ? at * BandShape::kBytes : 0);
        }
    }
    // Two halves of 8 pixels share their banks unless those of every other 4 pixels change places.
    static TILEWISE_DEVICE int raw_offset(int pixel, int half) {
        return pixel * BandShape::kPixelBytes + ((half ^ (pixel >> 2)) & 1) * 16;
    }
    TILEWISE_DEVICE void copy(int line, int stage) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const int chunk = thread_index() + i * BandShape::kThreads;
            const SharedAddress to = raw + stage * BandShape::kRawBytes + raw_offset(chunk / 2, chunk % 2);
            copy_async<16>(to, from[i] + (valid[i] ? line * line_step : 0), valid[i]);
        }
    }
    // Warps take turns at 16 pixels.
    static TILEWISE_DEVICE void turn(SharedAddress from_raw, SharedAddress to_plane, int pixels) {
        const int lane = lane_index(), quarter = lane / 8;
        TILEWISE_ROLLED
        for (int first = thread_index() / 32 * 16; first < pixels; first += BandShape::kWarps * 16) {
            u32 words[4];
            load_matrices<true>(from_raw + raw_offset(first + (quarter & 1) * 8 + lane % 8, quarter >> 1), words);
            TILEWISE_UNROLL
            for (int j = 0; j < 4; ++j) {
                const int channel = (j >> 1) * 8 + lane / 4, pixel = first + (j & 1) * 8 + lane % 4 * 2;
                store_shared<4>(to_plane + channel * BandShape::kPlanePitch + pixel * BandShape::kBytes,
                                Packet<4>{{words[j]}});
            }
        }
    }
};

}  // namespace tilewise::cuda
