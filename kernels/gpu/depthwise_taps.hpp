// SPDX-License-Identifier: MIT
// Which input meets which output through which tap, along one dimension, for a filter, stride and dilation known when compiled.
// Backward data too: its patches begin where the stride's phase is 0, so that every one is like the others.
#pragma once
#include "types.hpp"

namespace tilewise::gpu {

TILEWISE_DEVICE constexpr int ceil_div(int x, int y) { return (x + y - 1) / y; }

// One dimension of a patch of `outputs` outputs. Inputs are counted from the first that the patch can meet.
template <bool backward, int taps, int stride, int dilation, int outputs>
struct TapLine {
    static_assert(!backward || outputs % stride == 0, "patches of backward data are whole turns of the stride");
    static constexpr int kReach = (taps - 1) * dilation;
    static constexpr int kBefore = backward ? kReach / stride : 0;
    static constexpr int kInputs =
        backward ? kBefore + (outputs - 1) / stride + 1 : (outputs - 1) * stride + kReach + 1;

    // The tap through which input i reaches output o, or -1.
    static TILEWISE_DEVICE constexpr int tap(int i, int o) {
        const int distance = backward ? o - stride * (i - kBefore) : i - o * stride;
        return distance >= 0 && distance % dilation == 0 && distance / dilation < taps ? distance / dilation : -1;
    }
    // The input that output o meets through tap t, or -1.
    static TILEWISE_DEVICE constexpr int input(int o, int t) {
        if (!backward) return o * stride + t * dilation;
        const int distance = o - t * dilation + kBefore * stride;
        return distance % stride == 0 ? distance / stride : -1;
    }
    static TILEWISE_DEVICE constexpr bool is_used(int i) {
        for (int o = 0; o < outputs; ++o) {
            if (tap(i, o) >= 0) return true;
        }
        return false;
    }
    // Patches that cover `size` outputs, the first output of one of them, and the first input it can meet.
    static TILEWISE_DEVICE int patches(int size, int pad) {
        return ceil_div(size + (backward ? pad % stride : 0), outputs);
    }
    static TILEWISE_DEVICE int first_output(int patch, int pad) {
        return patch * outputs - (backward ? pad % stride : 0);
    }
    static TILEWISE_DEVICE int origin(int patch, int pad) {
        const int output = first_output(patch, pad);
        return backward ? (output + pad) / stride - kBefore : output * stride - pad;
    }
};

// The rows of a strip of outputs, of any height: as lines of inputs come in, those that they still meet are a window of kWindow
// rows, which live in kWindow places in turn. kTurn lines later every row is back in its place, so a loop over turns of
// unrolled lines knows all places. Rows are counted from `kBefore` strides ahead of the strip's first.
template <bool backward, int taps, int stride, int dilation>
struct RowWindow {
    static constexpr int kReach = (taps - 1) * dilation;
    static constexpr int kBefore = backward ? kReach / stride : 0;  // lines ahead of the one at the strip's first row
    static constexpr int kWindow = backward ? ceil_div(kReach + 1, stride) * stride : kReach / stride + 1;
    static constexpr int kTurn = backward ? kWindow / stride : kWindow * stride;

    // The rows that line i meets or passes over begin here, and there are at most kWindow of them.
    static TILEWISE_DEVICE constexpr int first_row(int i) {
        if (backward) return i * stride;
        return i >= kReach ? (i - kReach + stride - 1) / stride : -((kReach - i) / stride);
    }
    static TILEWISE_DEVICE constexpr int tap(int i, int row) {
        const int distance = backward ? row - i * stride : i - row * stride;
        return distance >= 0 && distance % dilation == 0 && distance / dilation < taps ? distance / dilation : -1;
    }
    static TILEWISE_DEVICE constexpr bool opens(int i, int row) {  // line i is the first of the row
        if (!backward) return row * stride == i;
        const int last = kReach > stride - 1 ? kReach : stride - 1;  // some rows are passed over without a tap
        return row > (i - 1) * stride + last && row <= i * stride + last;
    }
    static TILEWISE_DEVICE constexpr bool closes(int i, int row) {  // line i is its last
        return backward ? row >= i * stride && row < (i + 1) * stride : row * stride + kReach == i;
    }
    static TILEWISE_DEVICE constexpr bool is_used(int i) {
        for (int row = first_row(i); row < first_row(i) + kWindow; ++row) {
            if (tap(i, row) >= 0) return true;
        }
        return false;
    }
    static TILEWISE_DEVICE constexpr int place(int row) { return (row % kWindow + kWindow) % kWindow; }
    // Lines that `rows` rows need.
    static TILEWISE_DEVICE constexpr int lines(int rows) {
        return backward ? kBefore + (rows - 1) / stride + 1 : (rows - 1) * stride + kReach + 1;
    }
};

}  // namespace tilewise::gpu
