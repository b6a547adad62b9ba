// SPDX-License-Identifier: MIT
#include "base/text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.hpp"

namespace tilewise {
namespace {

TEST(Text, WholeNumbersAreTheWholeText) {
    EXPECT_EQ(parse_integer("0"), 0);
    EXPECT_EQ(parse_integer("-12"), -12);
    EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
    for (const char* text : {"", "-", "+1", " 1", "1 ", "1x", "0x1", "1.0", "9223372036854775808", "--1"}) {
        EXPECT_EQ(parse_integer(text), std::nullopt) << text;
    }
}

TEST(Text, SplitThenJoinIsTheText) {
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
        std::string text;
        for (std::int64_t n = random.between(0, 12); n > 0; --n) text += random.chance(30) ? ',' : 'a';
        const auto parts = split(text, ',');
        EXPECT_EQ(join(parts, ","), text);
        EXPECT_EQ(parts.size(), 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), ',')));
    }
}

TEST(Text, TrimTakesSpaceFromTheEndsOnly) {
    EXPECT_EQ(trim(" \t a b\r\n"), "a b");
    EXPECT_EQ(trim("a"), "a");
    EXPECT_EQ(trim(" \n "), "");
    EXPECT_EQ(trim(""), "");
}

TEST(Text, ExtentsRoundTrip) {
    Random random(2);
    for (int i = 0; i < 2000; ++i) {
        std::vector<std::int64_t> extents;
        for (std::int64_t n = random.between(1, 4); n > 0; --n) extents.push_back(random.between(-3, 100000));
        EXPECT_EQ(parse_extents(print_extents(extents)), extents);
    }
    EXPECT_EQ(print_extents(std::vector<std::int64_t>{3, 1, 7}), "3x1x7");
    for (const char* text : {"", "x", "3x", "x3", "3xx3", "3X3", "3x3 ", "axb"}) {
        EXPECT_EQ(parse_extents(text), std::nullopt) << text;
    }
}

TEST(Text, BytesRoundTrip) {
    Random random(3);
    for (int i = 0; i < 5000; ++i) {
        const auto shift = random.between(0, 62);
        const std::int64_t bytes = static_cast<std::int64_t>(random.bits() >> 1) >> shift << (random.between(0, shift));
        ASSERT_GE(bytes, 0);
        EXPECT_EQ(parse_bytes(print_bytes(bytes)), bytes) << print_bytes(bytes);
    }
}

TEST(Text, BytesUseTheLargestWholeUnit) {
    EXPECT_EQ(print_bytes(0), "0");
    EXPECT_EQ(print_bytes(1023), "1023");
    EXPECT_EQ(print_bytes(1024), "1K");
    EXPECT_EQ(print_bytes(67108864), "64M");
    EXPECT_EQ(print_bytes(std::int64_t{3} << 30), "3G");
    EXPECT_EQ(print_bytes((std::int64_t{3} << 30) + 1024), "3145729K");
    EXPECT_EQ(parse_bytes("8589934591G"), std::int64_t{8589934591} << 30);
    for (const char* text : {"", "K", "-1", "1k", "1KB", "1.5M", "8589934592G", "9007199254740992K", "1 K"}) {
        EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
    }
}

// One letter changed, dropped or doubled is what people mistype.
TEST(Text, NearestFindsAMistypedWord) {
    const std::vector<std::string_view> known = {"pipeline", "scheduler", "intrawave", "epilogue",
                                                 "double_smem_buffer"};
    Random random(4);
    for (int i = 0; i < 2000; ++i) {
        const std::string_view meant = random.pick(known);
        std::string typed(meant);
        const auto at = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(typed.size()) - 1));
        switch (random.between(0, 2)) {
            case 0: typed[at] = 'q'; break;
            case 1: typed.erase(at, 1); break;
            default: typed.insert(at, 1, typed[at]);
        }
        EXPECT_EQ(nearest(typed, known), meant) << typed;
    }
}

TEST(Text, NearestStaysSilentWhenNothingIsNear) {
    const std::vector<std::string_view> known = {"pipeline", "scheduler", "m", "n"};
    for (const std::string& word :
         {std::string("zzzzzz"), std::string(), std::string(1000000, 'p'), std::string("xyz")}) {
        EXPECT_EQ(nearest(word, known), std::nullopt);
    }
    EXPECT_EQ(nearest("pipeline", {}), std::nullopt);
}

TEST(Text, UnknownWordSuggestsOrLists) {
    const std::vector<std::string_view> known = {"fp32", "bf16"};
    EXPECT_EQ(unknown_word("dtype", "bf61", known), "unknown dtype 'bf61'; did you mean 'bf16'?");
    EXPECT_EQ(unknown_word("dtype", "quaternion", known), "unknown dtype 'quaternion'; one of: fp32, bf16");
    EXPECT_LT(unknown_word("dtype", std::string(100000, 'x'), known).size(), 200u) << "a message stays readable";
}

}  // namespace
}  // namespace tilewise
