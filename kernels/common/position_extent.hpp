// SPDX-License-Identifier: MIT
// How many positions a line of pixels takes where taps read shifted runs of them (shifted_wgrad_args.hpp,
// resident_filter_conv_args.hpp): results at the first ones, each reading up to `reach` further on. What is read behind the line
// must be zeros or pixels that no result of it needs; the zeros that the next line begins with can be those behind this one.
#pragma once
#include "args.hpp"

namespace tilewise {

constexpr Index position_extent(Index results, Index reach, Index zeros, Index pixels) {
    const Index read = results + reach, shared = read - (zeros > 0 ? zeros : 0), needed = read < pixels ? read : pixels;
    const Index most = needed > shared ? needed : shared;
    return most > results ? most : results;
}

}  // namespace tilewise
