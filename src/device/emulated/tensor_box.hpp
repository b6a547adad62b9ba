// SPDX-License-Identifier: MIT
// How a box of a tensor lies in shared memory: line after line, in pieces of 16 bytes whose place in a line is turned by the
// swizzle. The tables in tests/golden/cuda (tma_*.txt) say that this is what an H200 does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/common/machine.hpp"

namespace tilewise::emulated {

inline constexpr unsigned kChunkBytes = 16;
inline constexpr unsigned kMostClusterBlocks = 16;

// Bits 4 to 6 of an address, or fewer, are XORed with those of the number of its 128-byte line.
inline unsigned swizzled(unsigned address, int swizzle_bytes) {
    const unsigned mask = swizzle_bytes == 0 ? 0 : static_cast<unsigned>(swizzle_bytes) / kChunkBytes - 1;
    return address ^ (address >> 7 & mask) << 4;
}

struct BoxChunk {
    unsigned shared;        // address of its 16 bytes
    unsigned char* global;  // the first of them that is inside the tensor
    int skip, inside;       // bytes before that one, bytes inside
};

// Why no copy can move such a box, if so.
inline std::optional<std::string> box_problem(const EmulatedTensorMap& map, unsigned address) {
    const unsigned alignment = map.dims == 1 ? kChunkBytes : 128;
    if (address % alignment != 0)
        return "a bulk copy's place in shared memory is no multiple of 128 bytes (16 without a map)";
    if (map.data == nullptr) return "a tensor copy without a tensor map";
    const int line = map.box[0] * map.element_bytes;
    if (line % static_cast<int>(kChunkBytes) != 0) return "the lines of a tensor copy are no multiple of 16 bytes";
    if (map.swizzle_bytes > 0 && line > map.swizzle_bytes)
        return "the lines of a tensor copy are longer than its swizzle";
    if (reinterpret_cast<std::uintptr_t>(map.data) % kChunkBytes != 0)
        return "a tensor begins at no multiple of 16 bytes";
    return std::nullopt;
}

// Where a load or store begins in its tensor.
struct BoxPlace {
    std::array<int, kMaxTensorDims> at{};          // innermost coordinate first
    std::array<int, kMaxTensorDims - 2> offset{};  // of pixels

    BoxPlace(const int* coordinates, const int* offsets) {
        std::copy_n(coordinates, at.size(), at.begin());
        if (offsets) std::copy_n(offsets, offset.size(), offset.begin());
    }
};

// Calls f(coordinates) for every line of the box, those of the tensor; that of the innermost dimension is where lines begin.
template <class F>
void for_each_box_line(const EmulatedTensorMap& map, const BoxPlace& place, F&& f) {
    auto at = place.at;
    for (;;) {
        f(at);
        std::size_t d = 1;
        for (; d < static_cast<std::size_t>(map.dims); ++d) {
            at[d] += d + 1 < static_cast<std::size_t>(map.dims) && map.step[d - 1] > 0 ? map.step[d - 1] : 1;
            if (at[d] < place.at[d] + map.box[d]) break;
            at[d] = place.at[d];
        }
        if (d == static_cast<std::size_t>(map.dims)) return;
    }
}

// The same for the lines of pixels: each dimension goes through its range in steps, then the next goes one step on; the images
// come last.
template <class F>
void for_each_pixel(const EmulatedTensorMap& map, const BoxPlace& place, F&& f) {
    auto base = place.at;
    const auto images = static_cast<std::size_t>(map.dims) - 1;
    for (int i = 0; i < map.pixels; ++i) {
        auto at = base;
        for (std::size_t d = 1; d < images; ++d) at[d] += place.offset[d - 1];
        f(at);
        std::size_t d = 1;
        for (; d < images; ++d) {
            base[d] += map.step[d - 1];
            if (base[d] < map.size[d] + map.upper[d - 1]) break;
            base[d] = map.lower[d - 1];
        }
        if (d == images) ++base[d];
    }
}

// Calls f(chunk) for every 16 bytes of the box, in the order of shared memory before the swizzle.
template <class F>
void for_each_chunk(const EmulatedTensorMap& map, const BoxPlace& place, unsigned address, F&& f) {
    const int line = map.box[0] * map.element_bytes;
    const auto each_line = [&](const std::array<int, kMaxTensorDims>& at) {
        bool inside = true;
        Index offset = 0;
        for (std::size_t d = 1; d < static_cast<std::size_t>(map.dims); ++d) {
            inside = inside && at[d] >= 0 && at[d] < map.size[d];
            offset += at[d] * map.stride_bytes[d];
        }
        for (int byte = 0; byte < line; byte += static_cast<int>(kChunkBytes)) {
            const Index begin = Index(at[0]) * map.element_bytes + byte;  // of the tensor's line
            const Index first = std::max<Index>(begin, 0);
            const Index last = std::min<Index>(begin + kChunkBytes, map.size[0] * map.element_bytes);
            const bool some = inside && last > first;
            f(BoxChunk{swizzled(address, map.swizzle_bytes), some ? map.data + offset + first : nullptr,
                       some ? static_cast<int>(first - begin) : 0, some ? static_cast<int>(last - first) : 0});
            address += kChunkBytes;
        }
    };
    map.pixels > 0 ? for_each_pixel(map, place, each_line) : for_each_box_line(map, place, each_line);
}

}  // namespace tilewise::emulated
