// SPDX-License-Identifier: MIT
// The arguments of a family within the block that every kernel takes (FamilyArgs of kernels/common/args.hpp).
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "kernels/common/args.hpp"
#include "kernels/common/channel_slice_args.hpp"
#include "kernels/common/col2im_conv_args.hpp"
#include "kernels/common/depthwise_tiles_args.hpp"
#include "kernels/common/first_layer_conv_args.hpp"
#include "kernels/common/patch_conv_args.hpp"
#include "kernels/common/patch_wgrad_args.hpp"
#include "kernels/common/resident_filter_conv_args.hpp"
#include "kernels/common/shifted_wgrad_args.hpp"

namespace tilewise {
namespace {

template <class... Ts>
constexpr bool kHaveRoom = (FamilyArgs::is_room_for<Ts> && ...);
static_assert(kHaveRoom<PatchConvArgs, FirstLayerConvArgs, PatchWgradArgs, ResidentFilterConvArgs, ShiftedWgradArgs,
                        ChannelSliceArgs, DepthwiseTilesArgs, Col2imConvArgs>);

struct Large {
    int words[97];
};
struct Aligned {
    double value;
};
static_assert(!FamilyArgs::is_room_for<Large> && !FamilyArgs::is_room_for<Aligned> &&
              !FamilyArgs::is_room_for<std::string>);

// Tensor maps follow the block, which therefore keeps its size and ends with these.
static_assert(sizeof(FamilyArgs) == 384 && alignof(FamilyArgs) == 4);
static_assert(offsetof(KernelArgs, family_words) + sizeof(FamilyArgs) == sizeof(KernelArgs));

TEST(FamilyArgs, GivesBackWhatWasSet) {
    ShiftedWgradArgs args{};
    args.extent[1] = 7, args.together = 3;
    FamilyArgs block{};
    block.set(args);
    EXPECT_EQ(block.as<ShiftedWgradArgs>().extent[1], 7);
    EXPECT_EQ(block.as<ShiftedWgradArgs>().together, 3);
    KernelArgs kernel{};
    kernel.set_family_args(block);
    EXPECT_EQ(TILEWISE_FAMILY_ARGS(ShiftedWgradArgs, kernel).extent[1], 7);
}

TEST(FamilyArgs, KeepsNothingOfWhatWasSetBefore) {
    FamilyArgs block{}, fresh{};
    for (int& word : block.words) word = 1;
    ChannelSliceArgs args{};
    args.images = 2;
    EXPECT_NE(block, fresh);
    block.set(args), fresh.set(args);
    EXPECT_EQ(block, fresh);
}

}  // namespace
}  // namespace tilewise
