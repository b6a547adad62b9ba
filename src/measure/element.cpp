// SPDX-License-Identifier: MIT
#include "measure/element.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tilewise {
namespace {

std::array<double, 256> table_of(DType type) {
    std::array<double, 256> table{};
    for (std::uint32_t bits = 0; bits < table.size(); ++bits) table[bits] = decode(type, bits);
    return table;
}

const std::array<double, 256>& decode_table(DType type) {
    static const std::array<double, 256> fp8 = table_of(DType::fp8), bf8 = table_of(DType::bf8),
                                         int8 = table_of(DType::int8);
    return type == DType::fp8 ? fp8 : type == DType::bf8 ? bf8 : int8;
}

double decode_half(std::uint16_t bits) {
    // The exponent and mantissa moved to their places in a double, whose bias is 1008 larger; subnormals fall out
    // right.
    const auto moved = std::bit_cast<double>(static_cast<std::uint64_t>(bits & 0x7fff) << 42);
    const double magnitude = moved * 0x1p1008;
    const double value = (bits & 0x7c00) != 0x7c00 ? magnitude
                         : (bits & 0x3ff) == 0     ? std::numeric_limits<double>::infinity()
                                                   : std::numeric_limits<double>::quiet_NaN();
    return (bits & 0x8000) != 0 ? -value : value;
}

double decode_bfloat(std::uint16_t bits) {
    return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)};
}

template <class Stored, class Decode>
void decode_each(const void* from, std::int64_t stride, std::int64_t count, double* to, Decode decode_one) {
    const auto* bytes = static_cast<const std::byte*>(from);
    const auto load = [&](std::int64_t i) {
        Stored stored;
        std::memcpy(&stored, bytes + i * static_cast<std::int64_t>(sizeof stored), sizeof stored);
        return stored;
    };
    if (stride == 1) {  // a loop of its own, so that the compiler can use vectors
        for (std::int64_t i = 0; i < count; ++i) to[i] = decode_one(load(i));
    } else {
        for (std::int64_t i = 0; i < count; ++i) to[i] = decode_one(load(i * stride));
    }
}

template <class Stored, class Encode>
void encode_each(const double* from, std::int64_t count, void* to, Encode encode_one) {
    auto* bytes = static_cast<std::byte*>(to);
    for (std::int64_t i = 0; i < count; ++i) {
        const auto stored = static_cast<Stored>(encode_one(from[i]));
        std::memcpy(bytes + i * static_cast<std::int64_t>(sizeof stored), &stored, sizeof stored);
    }
}

}  // namespace

void decode(DType type, const void* from, std::int64_t stride, std::int64_t count, double* to) {
    switch (type) {
        case DType::fp32: return decode_each<float>(from, stride, count, to, [](float v) { return double{v}; });
        case DType::int32:
            return decode_each<std::int32_t>(from, stride, count, to,
                                             [](std::int32_t v) { return static_cast<double>(v); });
        case DType::fp16: return decode_each<std::uint16_t>(from, stride, count, to, decode_half);
        case DType::bf16: return decode_each<std::uint16_t>(from, stride, count, to, decode_bfloat);
        case DType::fp8:
        case DType::bf8:
        case DType::int8: {
            const double* table = decode_table(type).data();
            return decode_each<std::uint8_t>(from, stride, count, to, [table](std::uint8_t v) { return table[v]; });
        }
    }
}

void encode(DType type, const double* from, std::int64_t count, void* to) {
    // Each type is a constant in a loop of its own, so that the choice is made once.
    switch (type) {
        case DType::fp32:
            return encode_each<std::uint32_t>(from, count, to, [](double v) { return encode(DType::fp32, v); });
        case DType::int32:
            return encode_each<std::uint32_t>(from, count, to, [](double v) { return encode(DType::int32, v); });
        case DType::fp16:
            return encode_each<std::uint16_t>(from, count, to, [](double v) { return encode(DType::fp16, v); });
        case DType::bf16:
            return encode_each<std::uint16_t>(from, count, to, [](double v) { return encode(DType::bf16, v); });
        case DType::fp8:
            return encode_each<std::uint8_t>(from, count, to, [](double v) { return encode(DType::fp8, v); });
        case DType::bf8:
            return encode_each<std::uint8_t>(from, count, to, [](double v) { return encode(DType::bf8, v); });
        case DType::int8:
            return encode_each<std::uint8_t>(from, count, to, [](double v) { return encode(DType::int8, v); });
    }
}

}  // namespace tilewise
