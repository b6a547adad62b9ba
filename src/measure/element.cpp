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

// A small binary float: sign, exponent, mantissa, with subnormals.
struct Format {
    int mantissa;
    int min_exponent;          // of the smallest normal number
    std::uint32_t max_finite;  // bits of the largest number, without sign
    std::uint32_t infinity;    // bits of what an infinity becomes
    std::uint32_t overflow;    // bits of what a finite value too large becomes
    std::uint32_t nan;
    int sign_shift;
};

constexpr Format kHalf = {10, -14, 0x7bff, 0x7c00, 0x7c00, 0x7e00, 15};
constexpr Format kBfloat = {7, -126, 0x7f7f, 0x7f80, 0x7f80, 0x7fc0, 15};
constexpr Format kFp8 = {3, -6, 0x7e, 0x7f, 0x7e, 0x7f, 7};
constexpr Format kBf8 = {2, -14, 0x7b, 0x7c, 0x7b, 0x7e, 7};

double power_of_two(int exponent) {  // of a normal double
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

double decode_format(const Format& f, std::uint32_t bits) {
    const double sign = (bits >> f.sign_shift & 1) != 0 ? -1 : 1;
    const std::uint32_t magnitude = bits & ((1u << f.sign_shift) - 1);
    if (magnitude > f.max_finite) {
        const bool infinite = magnitude == f.infinity && f.infinity != f.nan;
        return infinite ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    const auto exponent = static_cast<int>(magnitude >> f.mantissa);
    const std::uint32_t fraction = magnitude & ((1u << f.mantissa) - 1);
    const std::uint32_t whole = exponent == 0 ? fraction : fraction | 1u << f.mantissa;
    return sign * whole * power_of_two(std::max(exponent - 1, 0) + f.min_exponent - f.mantissa);
}

std::uint32_t encode_format(const Format& f, double value) {
    if (std::isnan(value)) return f.nan;
    const std::uint32_t sign = (std::signbit(value) ? 1u : 0u) << f.sign_shift;
    const double magnitude = std::abs(value);
    if (std::isinf(magnitude)) return sign | f.infinity;
    const int exponent =
        std::max(static_cast<int>(std::bit_cast<std::uint64_t>(magnitude) >> 52) - 1023, f.min_exponent);
    if (exponent > 200) return sign | f.overflow;  // beyond every format; the scale below stays a normal double
    // In units of the last place the value is below 2^(mantissa+1); adding and taking away 2^52 rounds it, ties to
    // even.
    constexpr double kRounder = 4503599627370496.0;
    const double places = magnitude * power_of_two(f.mantissa - exponent);
    const auto whole = static_cast<std::uint32_t>((places + kRounder) - kRounder);
    // The implicit bit of a normal number adds one to the exponent field, and so does a carry out of the mantissa.
    const std::uint32_t bits = (static_cast<std::uint32_t>(exponent - f.min_exponent) << f.mantissa) + whole;
    return sign | (bits > f.max_finite ? f.overflow : bits);
}

template <class Whole>
std::uint32_t encode_whole(double value) {
    using Limits = std::numeric_limits<Whole>;
    if (std::isnan(value)) return 0;
    const double nearest = std::nearbyint(value);
    const double kept = std::clamp(nearest, double{Limits::min()}, double{Limits::max()});
    return static_cast<std::uint32_t>(static_cast<std::make_unsigned_t<Whole>>(static_cast<Whole>(kept)));
}

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

const Format& format_of(DType type) {
    switch (type) {
        case DType::fp16: return kHalf;
        case DType::bf16: return kBfloat;
        case DType::fp8: return kFp8;
        default: return kBf8;
    }
}

}  // namespace

double decode(DType type, std::uint32_t bits) {
    switch (type) {
        case DType::fp32: return double{std::bit_cast<float>(bits)};
        case DType::int8: return static_cast<std::int8_t>(bits);
        case DType::int32: return static_cast<std::int32_t>(bits);
        default: return decode_format(format_of(type), bits);
    }
}

std::uint32_t encode(DType type, double value) {
    switch (type) {
        case DType::fp32:
            // Converting what rounds beyond the largest float is undefined in C++; half a place above it is the border.
            if (std::abs(value) >= 0x1.ffffffp127)
                value = std::copysign(std::numeric_limits<double>::infinity(), value);
            return std::bit_cast<std::uint32_t>(static_cast<float>(value));
        case DType::int8: return encode_whole<std::int8_t>(value);
        case DType::int32: return encode_whole<std::int32_t>(value);
        default: return encode_format(format_of(type), value);
    }
}

double unit_roundoff(DType type) {
    switch (type) {
        case DType::fp32: return 0x1p-24;
        case DType::int8:
        case DType::int32: return 0;
        default: return power_of_two(-format_of(type).mantissa - 1);
    }
}

double least_roundoff(DType type) {
    switch (type) {
        case DType::fp32: return 0x1p-150;
        case DType::int8:
        case DType::int32: return 0.5;
        default: return power_of_two(format_of(type).min_exponent - format_of(type).mantissa - 1);
    }
}

double largest_finite(DType type) {
    switch (type) {
        case DType::fp32: return double{std::numeric_limits<float>::max()};
        case DType::int8: return 127;
        case DType::int32: return double{std::numeric_limits<std::int32_t>::max()};
        default: return decode(type, format_of(type).max_finite);
    }
}

std::uint32_t poison_bits(DType type) {
    switch (type) {
        case DType::fp32: return 0x7fc0dead;
        case DType::fp16: return 0x7e5a;
        case DType::bf16: return 0x7fda;
        case DType::fp8: return 0x7f;
        case DType::bf8: return 0x7e;
        case DType::int8: return 0x80;
        case DType::int32: return 0x80808080;
    }
    return 0;
}

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
            return encode_each<std::uint16_t>(from, count, to, [](double v) { return encode_format(kHalf, v); });
        case DType::bf16:
            return encode_each<std::uint16_t>(from, count, to, [](double v) { return encode_format(kBfloat, v); });
        case DType::fp8:
            return encode_each<std::uint8_t>(from, count, to, [](double v) { return encode_format(kFp8, v); });
        case DType::bf8:
            return encode_each<std::uint8_t>(from, count, to, [](double v) { return encode_format(kBf8, v); });
        case DType::int8:
            return encode_each<std::uint8_t>(from, count, to, [](double v) { return encode(DType::int8, v); });
    }
}

}  // namespace tilewise
