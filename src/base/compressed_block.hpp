// SPDX-License-Identifier: MIT
// Shared by the encoder and the decoder of a compressed block (compress.hpp): its codes, numbers and last offsets.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tilewise::block {

inline constexpr int kMaxCodeBits = 12;
inline constexpr std::uint32_t kMinMatch = 2;
inline constexpr std::uint32_t kLowOffsetBits = 4;  // most offsets are multiples of 16, an instruction
inline constexpr std::uint32_t kRepeats = 3;

inline constexpr std::size_t kByteSymbols = 256, kNumberSymbols = 64, kLowOffsetSymbols = 1U << kLowOffsetBits;

// A value for each symbol of each code: how often it occurs, its length, its price.
template <class T>
struct CodeTables {
    std::array<T, kByteSymbols> literals{};
    std::array<T, kNumberSymbols> runs{};
    std::array<T, kNumberSymbols> offsets{};  // the last ones, then new ones
    std::array<T, kLowOffsetSymbols> low_offsets{};
    std::array<T, kNumberSymbols> lengths{};         // after a new offset
    std::array<T, kNumberSymbols> repeat_lengths{};  // after a last one
};

// Calls `body` with each code of two sets of tables, until it returns false.
template <class A, class B, class Body>
bool for_each_code(A& a, B& b, const Body& body) {
    return body(a.literals, b.literals) && body(a.runs, b.runs) && body(a.offsets, b.offsets) &&
           body(a.low_offsets, b.low_offsets) && body(a.lengths, b.lengths) && body(a.repeat_lengths, b.repeat_lengths);
}

// A number as a symbol and the bits that follow it.
inline constexpr std::uint32_t kPlainNumbers = 16;
constexpr std::uint32_t number_symbol(std::uint32_t value) {
    if (value < kPlainNumbers) return value;
    const auto top = static_cast<std::uint32_t>(std::bit_width(value)) - 1;
    return kPlainNumbers + (top - 4) * 2 + ((value >> (top - 1)) & 1);
}
constexpr std::uint32_t number_extra_bits(std::uint32_t symbol) {
    return symbol < kPlainNumbers ? 0 : (symbol - kPlainNumbers) / 2 + 3;
}
constexpr std::uint32_t number_base(std::uint32_t symbol) {
    if (symbol < kPlainNumbers) return symbol;
    return (2 + ((symbol - kPlainNumbers) & 1)) << number_extra_bits(symbol);
}

// The offsets that were used last, the newest first.
struct LastOffsets {
    std::array<std::uint32_t, kRepeats> offset = {16, 8, 4};

    constexpr void use(std::uint32_t given) {  // a new one, or one of them
        const bool is_second = given == offset[1];
        if (given == offset[0]) return;
        if (!is_second) offset[2] = offset[1];
        offset[1] = offset[0];
        offset[0] = given;
    }
};

}  // namespace tilewise::block
