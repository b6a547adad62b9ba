// SPDX-License-Identifier: MIT
#include "measure/element.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.hpp"

namespace tilewise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kAll[] = {DType::fp32, DType::fp16, DType::bf16, DType::fp8, DType::bf8, DType::int8, DType::int32};
constexpr DType kSmallFloats[] = {DType::fp16, DType::bf16, DType::fp8, DType::bf8};

std::uint32_t patterns(DType type) { return 1u << (8 * bytes_of(type)); }

TEST(Element, EncodingADecodedPatternGivesItBack) {
    for (const DType type : {DType::fp16, DType::bf16, DType::fp8, DType::bf8, DType::int8}) {
        for (std::uint32_t bits = 0; bits < patterns(type); ++bits) {
            const double value = decode(type, bits);
            if (std::isnan(value)) {
                ASSERT_TRUE(std::isnan(rounded_to(type, value))) << name_of(type);
            } else {
                ASSERT_EQ(encode(type, value), bits) << name_of(type);
            }
        }
    }
}

TEST(Element, EncodingADecodedWidePatternGivesItBack) {
    Random random(1);
    for (int i = 0; i < 200000; ++i) {
        const auto bits = static_cast<std::uint32_t>(random.bits());
        EXPECT_EQ(encode(DType::int32, decode(DType::int32, bits)), bits);
        const double value = decode(DType::fp32, bits);
        if (!std::isnan(value)) {
            EXPECT_EQ(encode(DType::fp32, value), bits);
        }
    }
}

TEST(Element, KnownPatterns) {
    struct Known {
        DType type;
        std::uint32_t bits;
        double value;
    };
    const Known known[] = {
        {DType::fp8, 0x38, 1},
        {DType::fp8, 0x7e, 448},
        {DType::fp8, 0x01, 0x1p-9},
        {DType::fp8, 0x08, 0x1p-6},
        {DType::fp8, 0xb8, -1},
        {DType::bf8, 0x3c, 1},
        {DType::bf8, 0x7b, 57344},
        {DType::bf8, 0x01, 0x1p-16},
        {DType::bf8, 0x7c, kInfinity},
        {DType::fp16, 0x3c00, 1},
        {DType::fp16, 0x7bff, 65504},
        {DType::fp16, 0x0001, 0x1p-24},
        {DType::fp16, 0xfc00, -kInfinity},
        {DType::bf16, 0x3f80, 1},
        {DType::bf16, 0x0001, 0x1p-133},
        {DType::bf16, 0x7f80, kInfinity},
        {DType::int8, 0xff, -1},
        {DType::int32, 0x80000000, -2147483648.0},
    };
    for (const Known& k : known) {
        EXPECT_EQ(decode(k.type, k.bits), k.value) << name_of(k.type) << ' ' << k.bits;
        EXPECT_EQ(encode(k.type, k.value), k.bits) << name_of(k.type) << ' ' << k.value;
    }
    for (const std::uint32_t bits : {0x7fu, 0xffu}) EXPECT_TRUE(std::isnan(decode(DType::fp8, bits)));
    for (const std::uint32_t bits : {0x7du, 0x7eu, 0x7fu, 0xfdu}) EXPECT_TRUE(std::isnan(decode(DType::bf8, bits)));
}

// Between two neighbours everything goes to the nearer one, and the middle to the one whose last bit is 0.
TEST(Element, RoundsToNearestEven) {
    for (const DType type : kSmallFloats) {
        const std::uint32_t last = encode(type, largest_finite(type));
        for (std::uint32_t bits = 0; bits < last; ++bits) {
            const double low = decode(type, bits), high = decode(type, bits + 1), middle = (low + high) / 2;
            ASSERT_LT(low, high);
            const std::uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
            const std::uint32_t sign = patterns(type) / 2;
            ASSERT_EQ(encode(type, middle), even) << name_of(type) << ' ' << bits;
            ASSERT_EQ(encode(type, -middle), even | sign) << name_of(type) << ' ' << bits;
            ASSERT_EQ(encode(type, std::nextafter(middle, 0)), bits);
            ASSERT_EQ(encode(type, std::nextafter(middle, kInfinity)), bits + 1);
            ASSERT_LE(middle - low, std::max(unit_roundoff(type) * middle, least_roundoff(type)));
        }
    }
}

TEST(Element, TooLargeOverflowsOrSaturates) {
    EXPECT_EQ(rounded_to(DType::fp16, 65519.99), 65504);
    EXPECT_EQ(rounded_to(DType::fp16, 65520), kInfinity);
    EXPECT_EQ(rounded_to(DType::bf16, 1e39), kInfinity);
    EXPECT_EQ(rounded_to(DType::fp32, -1e39), -kInfinity);
    EXPECT_EQ(rounded_to(DType::fp32, 0x1.fffffefffp127), double{std::numeric_limits<float>::max()});
    for (const DType type : {DType::fp8, DType::bf8, DType::int8, DType::int32}) {
        for (const double value : {1.1 * largest_finite(type), 1e30, 1e300, std::numeric_limits<double>::max()}) {
            EXPECT_EQ(rounded_to(type, value), largest_finite(type)) << name_of(type);
            EXPECT_LE(rounded_to(type, -value), -largest_finite(type)) << name_of(type);
        }
    }
    EXPECT_EQ(rounded_to(DType::bf8, kInfinity), kInfinity);
    EXPECT_TRUE(std::isnan(rounded_to(DType::fp8, kInfinity)));
    EXPECT_EQ(rounded_to(DType::int8, -kInfinity), -128);
}

TEST(Element, TooSmallBecomesZeroWithItsSign) {
    for (const DType type : kSmallFloats) {
        const double tie = least_roundoff(type);
        EXPECT_EQ(encode(type, tie), 0u) << name_of(type);
        EXPECT_EQ(encode(type, -tie), patterns(type) / 2) << name_of(type);
        EXPECT_EQ(encode(type, std::nextafter(tie, 1)), 1u) << name_of(type);
        EXPECT_EQ(encode(type, std::numeric_limits<double>::denorm_min()), 0u);
    }
}

TEST(Element, WholeNumbersRoundToEven) {
    for (const DType type : {DType::int8, DType::int32}) {
        EXPECT_EQ(rounded_to(type, 2.5), 2);
        EXPECT_EQ(rounded_to(type, 3.5), 4);
        EXPECT_EQ(rounded_to(type, -2.5), -2);
        EXPECT_EQ(rounded_to(type, -3.5000001), -4);
        EXPECT_EQ(rounded_to(type, kNaN), 0);
    }
}

TEST(Element, ManyAtOnceAreAsOneByOne) {
    for (const DType type : kAll) {
        const auto size = static_cast<std::size_t>(bytes_of(type));
        Random random(2);
        std::vector<std::uint32_t> bits(1000);
        std::vector<std::byte> memory(1 + bits.size() * size);  // at an odd address
        for (std::size_t i = 0; i < bits.size(); ++i) {
            bits[i] = static_cast<std::uint32_t>(random.bits()) & (size == 4 ? ~0u : patterns(type) - 1);
            std::memcpy(memory.data() + 1 + i * size, &bits[i], size);
        }
        const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
        std::vector<double> values(bits.size());
        decode(type, memory.data() + 1, 1, 1000, values.data());
        for (std::size_t i = 0; i < bits.size(); ++i) EXPECT_TRUE(same(values[i], decode(type, bits[i])));
        std::vector<double> every_third(333);
        decode(type, memory.data() + 1, 3, 333, every_third.data());
        for (std::size_t i = 0; i < every_third.size(); ++i) EXPECT_TRUE(same(every_third[i], values[3 * i]));

        for (double& value : values) value = 300 * (double(random.bits()) * 0x1p-63 - 1);
        encode(type, values.data(), 1000, memory.data() + 1);
        for (std::size_t i = 0; i < values.size(); ++i) {
            std::uint32_t got = 0;
            std::memcpy(&got, memory.data() + 1 + i * size, size);
            ASSERT_EQ(got, encode(type, values[i])) << name_of(type);
        }
    }
}

TEST(Element, AllHalvesAtOnce) {  // the bulk decoder of fp16 takes a way of its own
    std::vector<std::uint16_t> bits(65536);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
    std::vector<double> values(bits.size());
    decode(DType::fp16, bits.data(), 1, 65536, values.data());
    for (std::uint32_t i = 0; i < bits.size(); ++i) {
        const double value = decode(DType::fp16, i);
        ASSERT_TRUE(values[i] == value || (std::isnan(values[i]) && std::isnan(value))) << i;
        ASSERT_EQ(std::signbit(values[i]), std::signbit(value) || (std::isnan(value) && i >= 0x8000)) << i;
    }
}

TEST(Element, PoisonOfAFloatIsNaN) {
    for (const DType type : kAll) {
        const bool whole = type == DType::int8 || type == DType::int32;
        EXPECT_EQ(std::isnan(decode(type, poison_bits(type))), !whole) << name_of(type);
    }
}

}  // namespace
}  // namespace tilewise
