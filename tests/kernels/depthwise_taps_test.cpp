// SPDX-License-Identifier: MIT
// The walks of depthwise kernels (kernels/gpu/depthwise_taps.hpp) against the definition of a convolution: every output meets
// exactly its taps, at the right inputs, and a window of rows has a place of its own for each row while it is open.
#include "kernels/gpu/depthwise_taps.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tilewise::gpu {
namespace {

constexpr int kMostPad = 5, kMostSize = 23;

template <bool backward_, int taps_, int stride_, int dilation_>
struct Line {
    static constexpr bool backward = backward_;
    static constexpr int taps = taps_, stride = stride_, dilation = dilation_;
    static constexpr int outputs = backward ? 2 * stride : 4;
    using Taps = TapLine<backward, taps, stride, dilation, outputs>;
    using Window = RowWindow<backward, taps, stride, dilation>;
};

using Meetings = std::set<std::pair<int, int>>;  // taps and inputs

// Inputs are of y where the output is of x, and the other way round; no size bounds them here.
template <class Line>
Meetings expected(int output, int pad) {
    Meetings meetings;
    for (int tap = 0; tap < Line::taps; ++tap) {
        const int shift = tap * Line::dilation;
        if (!Line::backward) {
            meetings.insert({tap, output * Line::stride + shift - pad});
        } else if ((output + pad - shift) % Line::stride == 0) {
            meetings.insert({tap, (output + pad - shift) / Line::stride});
        }
    }
    return meetings;
}

template <class Line>
void expect_patches(int pad) {
    using Taps = typename Line::Taps;
    const int patches = Taps::patches(kMostSize, pad);
    EXPECT_LE(Taps::first_output(0, pad), 0);
    EXPECT_GE(Taps::first_output(patches - 1, pad) + Line::outputs, kMostSize);
    for (int patch = 0; patch < patches; ++patch) {
        for (int o = 0; o < Line::outputs; ++o) {
            Meetings found, by_tap;
            for (int i = 0; i < Taps::kInputs; ++i) {
                const int tap = Taps::tap(i, o);
                if (tap < 0) continue;
                found.insert({tap, Taps::origin(patch, pad) + i});
                EXPECT_TRUE(Taps::is_used(i));
            }
            for (int tap = 0; tap < Line::taps; ++tap) {
                const int i = Taps::input(o, tap);
                if (i >= 0) by_tap.insert({tap, Taps::origin(patch, pad) + i});
            }
            const Meetings wanted = expected<Line>(Taps::first_output(patch, pad) + o, pad);
            EXPECT_EQ(found, wanted) << "patch " << patch << " output " << o << " pad " << pad;
            EXPECT_EQ(by_tap, wanted) << "patch " << patch << " output " << o << " pad " << pad;
        }
    }
}

// Walks down a strip turn by turn as the kernels do: what a place gathers between the opening and the closing of its row.
template <class Line>
void expect_window(int rows) {
    using Window = typename Line::Window;
    std::vector<std::map<int, int>> places(Window::kWindow);  // of the row there: tap and line
    std::vector<int> owner(Window::kWindow, -1);
    std::set<int> closed;
    const int lines = Window::lines(rows), turns = (lines + Window::kTurn - 1) / Window::kTurn;
    for (int line = 0; line < turns * Window::kTurn; ++line) {
        const int u = line % Window::kTurn, shift = line / Window::kTurn * Window::kWindow;
        for (int row = Window::first_row(u); row < Window::first_row(u) + Window::kWindow; ++row) {
            const auto place = static_cast<std::size_t>(Window::place(row));
            if (Window::opens(u, row)) places[place].clear(), owner[place] = row + shift;
            if (Window::tap(u, row) >= 0 && owner[place] == row + shift) places[place][Window::tap(u, row)] = line;
        }
        for (int row = Window::first_row(u); row < Window::first_row(u) + Window::kWindow; ++row) {
            const int counted = row + shift - Window::kBefore * Line::stride;
            if (!Window::closes(u, row) || counted < 0 || counted >= rows) continue;
            EXPECT_EQ(owner[static_cast<std::size_t>(Window::place(row))], row + shift);
            EXPECT_TRUE(closed.insert(counted).second) << counted;
            // The strip's first row lies where the pad takes the walk's first line to input 0 (or -kBefore).
            std::map<int, int> wanted;
            for (const auto& [tap, input] : expected<Line>(counted, 0)) wanted[tap] = input + Window::kBefore;
            EXPECT_EQ(places[static_cast<std::size_t>(Window::place(row))], wanted) << "row " << counted;
        }
    }
    EXPECT_EQ(static_cast<int>(closed.size()), rows);
}

template <bool backward>
using Lines =
    testing::Types<Line<backward, 1, 1, 1>, Line<backward, 3, 1, 1>, Line<backward, 3, 2, 1>, Line<backward, 7, 1, 1>,
                   Line<backward, 5, 2, 1>, Line<backward, 4, 3, 1>, Line<backward, 3, 1, 2>, Line<backward, 3, 2, 3>,
                   Line<backward, 2, 4, 1>, Line<backward, 7, 2, 2>>;

template <class Line>
class ForwardTaps : public testing::Test {};
TYPED_TEST_SUITE(ForwardTaps, Lines<false>);
TYPED_TEST(ForwardTaps, PatchesMeetTheirTaps) {
    for (int pad = 0; pad <= kMostPad; ++pad) expect_patches<TypeParam>(pad);
}
TYPED_TEST(ForwardTaps, RowsKeepTheirPlace) {
    for (int rows = 1; rows < kMostSize; ++rows) expect_window<TypeParam>(rows);
}

template <class Line>
class BackwardTaps : public testing::Test {};
TYPED_TEST_SUITE(BackwardTaps, Lines<true>);
TYPED_TEST(BackwardTaps, PatchesMeetTheirTaps) {
    for (int pad = 0; pad <= kMostPad; ++pad) expect_patches<TypeParam>(pad);
}
TYPED_TEST(BackwardTaps, RowsKeepTheirPlace) {
    for (int rows = TypeParam::stride; rows < kMostSize; rows += TypeParam::stride) expect_window<TypeParam>(rows);
}

}  // namespace
}  // namespace tilewise::gpu
