// SPDX-License-Identifier: MIT
// The words a kernel config is written in, beside those it shares with problems (problem/types.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/enum_names.hpp"

namespace tilewise {

// Three extents of a tile, a wave arrangement or a warp tile: rows, columns and depth of the product.
struct Shape3 {
    int m = 0, n = 0, k = 0;

    bool operator==(const Shape3&) const = default;
};

// A cluster of blocks that share loads: blocks along m and n.
struct Shape2 {
    int m = 1, n = 1;

    bool operator==(const Shape2&) const = default;
};

// Which sizes may fall short of a whole tile. A dimension without padding must be a multiple of its tile.
struct Padding {
    bool m = true, n = true, k = true;

    bool operator==(const Padding&) const = default;
};

// How operand tiles reach the matrix units; each arch file says what it has and docs say what each is there.
enum class Pipeline : std::uint8_t {
    basic_v1,
    mem,
    compv3,
    compv4,
    compv5,
    compv6,
    comp_async,
    basic_async_v1,
    preshuffle,
};
template <>
struct EnumNames<Pipeline> {
    static constexpr std::string_view kind = "pipeline";
    static constexpr std::array<std::string_view, 9> names = {
        "basic_v1", "mem", "compv3", "compv4", "compv5", "compv6", "comp_async", "basic_async_v1", "preshuffle"};
};
inline constexpr std::size_t kPipelineCount = EnumNames<Pipeline>::names.size();

// Whether the waves of a block interleave loads and arithmetic within a wave or between waves.
enum class Scheduler : std::uint8_t { intrawave, interwave, automatic };
template <>
struct EnumNames<Scheduler> {
    static constexpr std::string_view kind = "scheduler";
    static constexpr std::array<std::string_view, 3> names = {"intrawave", "interwave", "auto"};
};
inline constexpr std::size_t kSchedulerCount = EnumNames<Scheduler>::names.size();

// How results leave: straight from registers, or shuffled through shared memory into wide stores.
enum class Epilogue : std::uint8_t { direct, cshuffle };
template <>
struct EnumNames<Epilogue> {
    static constexpr std::string_view kind = "epilogue";
    static constexpr std::array<std::string_view, 2> names = {"default", "cshuffle"};
};

// How partial sums of a stream-K decomposition meet.
enum class StreamK : std::uint8_t { off, atomic, linear, tree };
template <>
struct EnumNames<StreamK> {
    static constexpr std::string_view kind = "stream-K reduction";
    static constexpr std::array<std::string_view, 4> names = {"off", "atomic", "linear", "tree"};
};

// The order in which tiles are visited.
enum class Raster : std::uint8_t { m, n, hilbert };
template <>
struct EnumNames<Raster> {
    static constexpr std::string_view kind = "raster order";
    static constexpr std::array<std::string_view, 3> names = {"m", "n", "hilbert"};
};

// How activations of a convolution are fetched: by plain loads, by asynchronous copies of elements, by the tensor copy
// engine in its im2col mode, or once for all taps, as a patch of pixels with what the filter needs around it; or not at all: a plain
// product by all taps at once leaves columns, which are added up.
enum class Gather : std::uint8_t { plain, async, tensor, halo, columns };
template <>
struct EnumNames<Gather> {
    static constexpr std::string_view kind = "gather mode";
    static constexpr std::array<std::string_view, 5> names = {"plain", "async", "tensor", "halo", "columns"};
};

// A convolution kernel may assume one of these of the filter: 1x1 without padding; that and stride 1; 3x3; one channel
// per group.
enum class Specialization : std::uint8_t { none, filter_1x1, filter_1x1_stride1, filter_3x3, depthwise };
template <>
struct EnumNames<Specialization> {
    static constexpr std::string_view kind = "specialization";
    static constexpr std::array<std::string_view, 5> names = {"none", "1x1", "1x1s1", "3x3", "depthwise"};
};

}  // namespace tilewise
