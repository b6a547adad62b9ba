// SPDX-License-Identifier: MIT
// The geometry of staged patches (kernels/common/patch_shape.hpp) against the definition of a convolution: every output of
// every class meets exactly its taps, at the right pixels, and all of them are in the patch.
#include "kernels/common/patch_shape.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "base/random.hpp"
#include "kernels/common/patch_conv_layout.hpp"

namespace tilewise {
namespace {

KernelConv random_conv(Random& random) {
    KernelConv conv{};
    conv.images = random.between(1, 3), conv.groups = 4, conv.c = 8, conv.k = 8;
    for (int d = 0; d < kMaxKernelDims; ++d) {
        do {
            conv.in[d] = random.between(1, 9), conv.filter[d] = random.between(1, 4);
            conv.stride[d] = random.between(1, 4), conv.dilation[d] = random.between(1, 4);
            conv.pad[d] = random.between(0, 4);
            const Index reach = (conv.filter[d] - 1) * conv.dilation[d] + 1;
            conv.out[d] = (conv.in[d] + 2 * conv.pad[d] - reach) / conv.stride[d] + 1;
            if (conv.in[d] + 2 * conv.pad[d] < reach) conv.out[d] = 0;
        } while (conv.out[d] < 1);
    }
    return conv;
}

using Meeting = std::tuple<int, int>;  // a tap and the position of the staged tensor it meets

// By the definition: forward, output o; backward data, input position o.
std::set<Meeting> expected(const KernelConv& conv, int d, bool backward, int o) {
    std::set<Meeting> meetings;
    for (int tap = 0; tap < conv.filter[d]; ++tap) {
        const Index reach = tap * conv.dilation[d] - conv.pad[d];
        if (!backward) {
            meetings.insert({tap, static_cast<int>(o * conv.stride[d] + reach)});
        } else if ((o - reach) % conv.stride[d] == 0) {
            meetings.insert({tap, static_cast<int>((o - reach) / conv.stride[d])});
        }
    }
    return meetings;
}

TEST(HaloShape, OutputsMeetTheirTaps) {
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
        const KernelConv conv = random_conv(random);
        for (const bool backward : {false, true}) {
            const PatchAxis a = patch_axis(conv, 2, backward);
            for (int o = 0; o < a.outputs; ++o) {
                const int q = o / a.classes, which = o % a.classes;
                std::set<Meeting> met;
                int places = 0;
                for (int tap = 0; tap < a.taps; ++tap) {
                    if (a.class_of(tap) != which) continue;
                    const int offset = a.offset_of(tap);
                    ASSERT_TRUE(offset >= 0 && offset < a.span);
                    met.insert({tap, q * a.in_step + a.first + offset});
                    ASSERT_EQ(a.place_of(tap), places++);
                }
                ASSERT_EQ(met, expected(conv, 2, backward, o));
                ASSERT_EQ(a.taps_of_class(which), places);
            }
        }
    }
}

// A pixel's place in the patch, the way the table lists it: images, depth, height, then columns by residue; or by residue first.
int stored_place(const PatchShape& p, int image, int d, int h, int w) {
    if (p.plane > 0) {
        return w % p.steps[2] * p.plane + ((image * p.depth + d) * p.height + h) * p.phase + w / p.steps[2];
    }
    return ((image * p.depth + d) * p.height + h) * p.width() + w % p.steps[2] * p.phase + w / p.steps[2];
}

TEST(HaloShape, TapsAreDistancesInThePatch) {
    Random random(2);
    for (int i = 0; i < 500; ++i) {
        const KernelConv conv = random_conv(random);
        const bool backward = random.chance(50);
        PatchAxis axes[kMaxKernelDims];
        PatchTile tile{static_cast<int>(random.between(1, 2)), {}};
        int row[kMaxKernelDims] = {}, at[kMaxKernelDims] = {}, offset[kMaxKernelDims] = {};
        for (int d = 0; d < kMaxKernelDims; ++d) {
            axes[d] = patch_axis(conv, d, backward);
            tile.extent[d] = static_cast<int>(random.between(1, 5));
            row[d] = static_cast<int>(random.between(0, tile.extent[d] - 1));
            offset[d] = axes[d].offset_of(static_cast<int>(random.between(0, axes[d].taps - 1)));
            at[d] = row[d] * axes[d].in_step + offset[d];
        }
        PatchShape p = patch_shape(axes, tile, 3);
        if (random.chance(50)) {
            p.plane = p.images * p.depth * p.height * p.phase + static_cast<int>(random.between(0, 9));
        }
        const int image = tile.images - 1;
        const int pixel = p.pixel_of(image, row[0], row[1], row[2]) + p.tap_distance(offset[0], offset[1], offset[2]);
        ASSERT_EQ(pixel, stored_place(p, image, at[0], at[1], at[2]));
        ASSERT_LT(pixel, p.pixels());
        ASSERT_TRUE(at[0] < p.depth && at[1] < p.height && at[2] < p.columns);
    }
}

TEST(PatchConvLayout, ProductsAreWholeChunks) {
    Random random(3);
    for (int i = 0; i < 500; ++i) {
        KernelConv conv = random_conv(random);
        conv.c = random.between(1, 40), conv.k = random.between(1, 40);
        const PatchConvKernel kernel = {
            random.chance(50), 1 << random.between(0, 5), 128, 32, 4, 2, 2, 2, random.chance(50), false, false, 0};
        const int groups = patch_product_groups(conv, kernel);
        if (groups > kernel.merge) continue;
        PatchAxis axes[kMaxKernelDims];
        for (int d = 0; d < kMaxKernelDims; ++d) axes[d] = patch_axis(conv, d, kernel.backward_data);
        const PatchConvLayout plan = patch_conv_layout(conv, axes, {1, {1, 2, 4}}, kernel, 32);
        ASSERT_EQ(plan.chunks * kPatchChunkBytes, plan.in_channels * 2);
        ASSERT_EQ(plan.products * groups, kernel.merge);
        ASSERT_GE(plan.column_tiles * kernel.columns, plan.out_channels);
        // Every tap belongs to one class, so the steps hold each once.
        const Index taps = conv.filter[0] * conv.filter[1] * conv.filter[2];
        ASSERT_GE(2 * plan.steps, taps * plan.chunks);
        ASSERT_LE(2 * plan.steps, taps * plan.chunks + plan.classes);
    }
}

}  // namespace
}  // namespace tilewise
