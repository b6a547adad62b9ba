// SPDX-License-Identifier: MIT
// The inner loops of direct_weight.hpp: for a line of dy, the sums of a few taps in registers. A block of p pixels holds p
// vectors of dy and reads p + t - 1 vectors of x for t taps, so p * t multiply-adds take 2p + t - 1 loads.
#pragma once
#include "../../common/conv_walk.hpp"
#include "../primitives.hpp"
#include "spread.hpp"

namespace tilewise::cpu::direct_conv {

inline constexpr int kMostRows = 3;  // rows of taps that are taken at once

// A line of dy and the lines of x that one or more rows of taps lead to.
template <class StorageY, class StorageX>
struct WeightLine {
    const StorageY* dy;
    const StorageX* x[kMostRows];
    Index y_stride, x_stride;  // between pixels
    WalkDim walk;
};

template <class Config, bool whole, bool spread>
struct WeightBlock {
    using UnitsY = SingleUnits<typename Config::A>;
    using UnitsX = SingleUnits<typename Config::B>;
    using Line = WeightLine<typename UnitsY::Storage, typename UnitsX::Storage>;
    using StorageX = typename UnitsX::Storage;
    static constexpr int kVectors = Config::warp_n > kLanes ? Config::warp_n / kLanes : 1, kWidth = kVectors * kLanes;
    static constexpr int kRegisters = kVectorBytes == 64 ? 14 : 6;  // for vectors of dy
    static constexpr int kMostPixels = kVectors > kRegisters ? 1 : kRegisters / kVectors;
    static constexpr int kPixels = Config::warp_m < kMostPixels ? Config::warp_m : kMostPixels;
    static constexpr int kTaps = Config::ct_stride[2] > 0 ? Config::ct_filter[2] : 0, kStep = Config::ct_stride[2];
    // A multiply-add takes four clocks to finish: that many sums must be under way.
    static constexpr int chains(int taps) { return taps * kVectors >= 4 ? 1 : taps * kVectors >= 2 ? 2 : 4; }

    // Taps of several rows share what is read of dy, if their sums fit the registers.
    static constexpr bool kTakesRows =
        whole && kTaps == kMostRows && Config::ct_filter[1] == kMostRows && kVectors <= 2;
    static constexpr int pixels_for(int rows) { return rows > 1 && kPixels * kVectors > 8 ? 8 / kVectors : kPixels; }

    template <int taps, int rows>
    struct Sums {
        F v[rows][chains(taps * rows)][taps][kVectors];
    };

    static TILEWISE_INLINE U read_y(const Line& line, Index pixel, int v, const Lanes& lanes) {
        const auto* p = line.dy + pixel * line.y_stride + v * kLanes;
        using Raw = typename UnitsY::Raw;
        return UnitsY::units(whole ? load<Raw>(p) : load_first<Raw>(p, lanes.valid * kUnitBytes<UnitsY>));
    }
    static TILEWISE_INLINE U read_x(const StorageX* p, int v, const Lanes* lanes) {
        const Index offset = whole && !spread ? Index(v * kLanes) : lanes[v].first - lanes[0].first;
        return read_lanes<UnitsX, whole, spread>(p + offset, lanes[v]);
    }

    // `pixels` positions from j on, `taps` neighbouring taps from `tap` on. With step 0 any step and shift will do.
    template <int pixels, int taps, int step, bool inside, int rows>
    static TILEWISE_INLINE void add(Sums<taps, rows>& sums, const Line& line, Index j, Index tap, const Lanes* lanes) {
        const WalkDim& walk_x = line.walk;
        const auto size = static_cast<unsigned long long>(walk_x.in_size);
        const Index at = j * walk_x.in_step + walk_x.in_first + tap * walk_x.tap_shift;
        U dy[pixels][kVectors];
        TILEWISE_UNROLL
        for (int i = 0; i < pixels * kVectors; ++i) {
            dy[i / kVectors][i % kVectors] = read_y(line, j + i / kVectors, i % kVectors, lanes[i % kVectors]);
            hold(dy[i / kVectors][i % kVectors]);
        }
        TILEWISE_UNROLL
        for (int row = 0; row < rows; ++row) {
            add_row<pixels, taps, step, inside>(sums.v[row], line, line.x[row], dy, at, size, lanes);
        }
    }
    template <int pixels, int taps, int step, bool inside, int count>
    static TILEWISE_INLINE void add_row(F (&sums)[count][taps][kVectors], const Line& line, const StorageX* x_line,
                                        const U (&dy)[pixels][kVectors], Index at, unsigned long long size,
                                        const Lanes* lanes) {
        const WalkDim& walk_x = line.walk;
        const StorageX* p = x_line + at * line.x_stride;
        constexpr int kReads = step == 0 ? pixels * taps : (pixels - 1) * step + taps;
        TILEWISE_UNROLL
        for (int r = 0; r < kReads; ++r) {
            const StorageX* from = p;
            Index pixel_x = at + r;
            if constexpr (step == 0) {
                pixel_x = at + r / taps * walk_x.in_step + r % taps * walk_x.tap_shift;
                from = x_line + pixel_x * line.x_stride;
            } else {
                walk(p, line.x_stride);
                if (taps < step && r % step >= taps) continue;
            }
            if (!inside && static_cast<unsigned long long>(pixel_x) >= size) continue;
            TILEWISE_UNROLL
            for (int v = 0; v < kVectors; ++v) {
                U x = read_x(from, v, lanes);
                if (step != 0 && taps > 1) hold(x);
                TILEWISE_UNROLL
                for (int t = 0; t < taps; ++t) {
                    const int i = step == 0 ? r / taps : (r - t) / (step == 0 ? 1 : step);
                    if (step == 0 ? t != r % taps : r < t || (r - t) % (step == 0 ? 1 : step) != 0 || i >= pixels) {
                        continue;
                    }
                    F& sum = sums[i % count][t][v];
                    sum = fma(as_float(x), as_float(dy[i][v]), sum);
                }
            }
        }
    }

    // All positions of the line for taps from `tap` on; sums are [row][tap][kWidth], row_stride and `stride` apart.
    template <int taps, int step, int rows>
    static TILEWISE_NOINLINE void run_taps(const Line& given, Index tap, float* to, Index stride, Index row_stride,
                                           const Lanes* given_lanes) {
        constexpr int kBlock = pixels_for(rows), kSums = rows * taps * kVectors, kRow = taps * kVectors;
        const Line line = given;
        Lanes lanes[kVectors];
        TILEWISE_UNROLL
        for (int v = 0; v < kVectors; ++v) lanes[v] = given_lanes[v];
        const auto place = [&](int i) {
            return to + i / kRow * row_stride + i % kRow / kVectors * stride + i % kVectors * kLanes;
        };
        Sums<taps, rows> sums = {};
        TILEWISE_UNROLL
        for (int i = 0; i < kSums; ++i) {
            sums.v[i / kRow][0][i % kRow / kVectors][i % kVectors] = load<F>(place(i));
        }
        const WalkDim& x = line.walk;
        Index j = 0;
        for (; x.count - j >= kBlock && whole && step != 0; j += kBlock) {
            const Index at = j * x.in_step + x.in_first + tap * x.tap_shift;
            if (at >= 0 && at + (kBlock - 1) * step + taps <= x.in_size) {
                add<kBlock, taps, step, true, rows>(sums, line, j, tap, lanes);
            } else {
                add<kBlock, taps, step, false, rows>(sums, line, j, tap, lanes);
            }
        }
        for (; j < x.count; ++j) add<1, taps, step, false, rows>(sums, line, j, tap, lanes);
        TILEWISE_UNROLL
        for (int i = 0; i < kSums; ++i) {
            F total = sums.v[i / kRow][0][i % kRow / kVectors][i % kVectors];
            for (int c = 1; c < chains(taps * rows); ++c)
                total += sums.v[i / kRow][c][i % kRow / kVectors][i % kVectors];
            store(place(i), total);
        }
    }

    // One row of taps.
    static TILEWISE_INLINE void run(const Line& line, float* sums, Index stride, const Lanes* lanes) {
        const WalkDim& x = line.walk;
        if constexpr (kTaps > 0 && whole) {
            if (x.tap_shift == 1 && x.in_step == kStep && x.taps == kTaps) {
                return run_taps<kTaps, kStep, 1>(line, 0, sums, stride, 0, lanes);
            }
        }
        Index tap = 0;
        if constexpr (whole && kTaps == 0) {
            const bool next = x.tap_shift == 1 && x.in_step == 1;
            for (; next && x.taps - tap >= 3; tap += 3) {
                run_taps<3, 1, 1>(line, tap, sums + tap * stride, stride, 0, lanes);
            }
        }
        for (; x.taps - tap >= 3; tap += 3) run_taps<3, 0, 1>(line, tap, sums + tap * stride, stride, 0, lanes);
        for (; tap < x.taps; ++tap) run_taps<1, 0, 1>(line, tap, sums + tap * stride, stride, 0, lanes);
    }
};

}  // namespace tilewise::cpu::direct_conv
