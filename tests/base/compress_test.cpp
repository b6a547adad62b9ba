// SPDX-License-Identifier: MIT
#include "base/compress.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/compressed_block.hpp"

namespace tilewise {
namespace {

std::string random_bytes(std::size_t count, unsigned seed, unsigned kinds = 256) {
    std::mt19937 random(seed);
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % kinds);
    return bytes;
}

// Like kernels: instructions of 16 bytes, most of them seen before, some with another field.
std::string instructions(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    const std::string known = random_bytes(64 * 16, 1);
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) {
        std::string one = known.substr(random() % 64 * 16, 16);
        if (random() % 4 == 0) one[random() % 16] = static_cast<char>(random());
        bytes += one;
    }
    return bytes;
}

void expect_round_trip(const std::string& bytes) {
    const std::string block = compress(bytes);
    EXPECT_EQ(compress(bytes), block);
    const auto back = decompress(block, bytes.size());
    ASSERT_TRUE(back.ok()) << back.error().message << " " << bytes.size();
    EXPECT_TRUE(*back == bytes) << bytes.size();
}

TEST(Compress, EverythingComesBack) {
    for (const std::size_t size : {0U, 1U, 2U, 3U, 15U, 16U, 17U, 100U, 5000U}) {
        expect_round_trip(std::string(size, '\0'));
        expect_round_trip(std::string(size, 'x'));
        for (const unsigned kinds : {2U, 5U, 256U}) expect_round_trip(random_bytes(size, 3, kinds));
        expect_round_trip(instructions(size, 4).substr(0, size));
    }
    std::string rising;
    for (int i = 0; i < 3000; ++i) rising += std::to_string(i) + (i % 7 == 0 ? "," : ";");
    expect_round_trip(rising);
    expect_round_trip(random_bytes(70000, 5) + random_bytes(70000, 6, 3) + random_bytes(70000, 5));
}

TEST(Compress, WhatIsAlikeTakesLittle) {
    const std::string kernel = instructions(4000, 7), far = random_bytes(300000, 8);
    EXPECT_LT(compress(std::string(1 << 20, '\0')).size(), 1500U);
    EXPECT_LT(compress(kernel + far + kernel).size(), compress(kernel + far).size() + 200) << "a window of any length";
    EXPECT_LT(compress(kernel).size(), kernel.size() / 5);
    EXPECT_LT(compress(far).size(), far.size() + 1000) << "what is not alike takes little more";
}

TEST(Compress, NumbersComeBack) {
    using namespace block;
    for (std::uint32_t value = 0; value < (1U << 25); value = value < 5000 ? value + 1 : value * 5 / 4 + 7) {
        const std::uint32_t symbol = number_symbol(value);
        ASSERT_LT(symbol, kNumberSymbols);
        ASSERT_GE(value, number_base(symbol));
        ASSERT_LT(value - number_base(symbol), 1U << number_extra_bits(symbol));
    }
    EXPECT_LT(kRepeats + number_symbol(kMaxBlockBytes >> kLowOffsetBits), kNumberSymbols);
}

TEST(Compress, AnotherSizeIsRefused) {
    const std::string bytes = instructions(500, 9), block = compress(bytes);
    for (const std::size_t size : {std::size_t{0}, bytes.size() - 1, bytes.size() + 1, 2 * bytes.size()}) {
        EXPECT_FALSE(decompress(block, size).ok()) << size;
    }
    EXPECT_FALSE(decompress("", 1).ok());
    const auto huge = decompress(block, kMaxBlockBytes + 1);
    ASSERT_FALSE(huge.ok());
    EXPECT_NE(huge.error().message.find(std::to_string(kMaxBlockBytes)), std::string::npos) << huge.error().message;
}

TEST(Compress, CutOffOrLongerABlockIsRefused) {
    const std::string bytes = instructions(300, 10), block = compress(bytes);
    for (std::size_t size = 0; size < block.size(); ++size) {
        EXPECT_FALSE(decompress(block.substr(0, size), bytes.size()).ok()) << size;
    }
    EXPECT_FALSE(decompress(block + '\0', bytes.size()).ok());
}

// Whatever a bit was, the answer is an error or so many bytes; nothing outside of them is touched (sanitizers look on).
TEST(Compress, AnyBitMayBeWrong) {
    const std::string bytes = instructions(200, 11) + random_bytes(300, 12, 3), block = compress(bytes);
    int refused = 0;
    for (std::size_t bit = 0; bit < block.size() * 8; ++bit) {
        std::string bad = block;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
        const auto back = decompress(bad, bytes.size());
        if (back) {
            EXPECT_EQ(back->size(), bytes.size());
        } else {
            ++refused;
        }
    }
    EXPECT_GT(refused, 0);
    for (unsigned seed = 0; seed < 2000; ++seed) {
        const auto back = decompress(random_bytes(seed, seed, seed % 5 + 2), 10 * seed);
        EXPECT_TRUE(!back || back->size() == 10 * seed);
    }
}

}  // namespace
}  // namespace tilewise
