// SPDX-License-Identifier: MIT
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.hpp"

namespace tilewise {
namespace {

std::string random_string(Random& random) {
    // Everything a writer has to escape, everything it must not, and characters of two, three and four bytes.
    const std::vector<std::string> pieces = {"a",    "Z",    "0",    " ",      "\"",     "\\",
                                             "/",    "\n",   "\t",   "\r",     "\b",     "\f",
                                             "\x01", "\x1f", "\x7f", "\u00e9", "\u20ac", "\U0001f600"};
    std::string text;
    for (std::int64_t i = random.between(0, 8); i > 0; --i) text += random.pick(pieces);
    if (random.chance(5)) text += '\0';
    return text;
}

double random_double(Random& random) {
    while (true) {
        // Any bit pattern: huge, tiny and denormal numbers as often as ordinary ones.
        const double value = std::bit_cast<double>(random.bits());
        if (std::isfinite(value)) return value;
    }
}

Json random_json(Random& random, int depth) {
    switch (random.between(0, depth > 0 ? 6 : 4)) {
        case 0: return Json();
        case 1: return Json(random.chance(50));
        case 2:
            return random.chance(50) ? Json(random.between(-99, 99)) : Json(static_cast<std::int64_t>(random.bits()));
        case 3:
            return random.chance(50) ? Json(random_double(random)) : Json(static_cast<double>(random.between(-9, 9)));
        case 4: return Json(random_string(random));
        case 5: {
            Json::Array items;
            for (std::int64_t i = random.between(0, 4); i > 0; --i) items.push_back(random_json(random, depth - 1));
            return Json(std::move(items));
        }
        default: {
            Json object{Json::Object{}};
            for (std::int64_t i = random.between(0, 4); i > 0; --i) {
                const std::string key = random_string(random);
                if (!object.find(key)) object.set(key, random_json(random, depth - 1));
            }
            return object;
        }
    }
}

TEST(Json, DumpThenParseGivesTheSameValue) {
    Random random(1);
    for (int i = 0; i < 5000; ++i) {
        const Json value = random_json(random, 4);
        for (const int indent : {-1, 0, 2}) {
            const auto parsed = Json::parse(value.dump(indent));
            ASSERT_TRUE(parsed.ok()) << parsed.error().message << "\n" << value.dump(indent);
            ASSERT_EQ(*parsed, value) << value.dump(indent);
            ASSERT_EQ(parsed->dump(), value.dump());
        }
    }
}

TEST(Json, OneLineDumpHasNoLineBreak) {
    Random random(2);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(random_json(random, 4).dump().find('\n'), std::string::npos);
}

TEST(Json, EqualityTellsKindsAndOrderApart) {
    EXPECT_FALSE(Json(1) == Json(1.0));
    EXPECT_FALSE(Json() == Json(false));
    EXPECT_FALSE(Json("1") == Json(1));
    EXPECT_FALSE(Json::object({{"a", 1}, {"b", 2}}) == Json::object({{"b", 2}, {"a", 1}}));
    EXPECT_TRUE(Json::object({{"a", 1}, {"b", 2}}) == Json::object({{"a", 1}, {"b", 2}}));
}

TEST(Json, WholeNumbersStayWholeUpToTheLimits) {
    constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t value : {kLeast, kLeast + 1, std::int64_t{-1}, std::int64_t{0}, kMost - 1, kMost}) {
        const auto parsed = Json::parse(std::to_string(value));
        ASSERT_TRUE(parsed.ok());
        ASSERT_NE(parsed->integer(), nullptr) << value;
        EXPECT_EQ(*parsed->integer(), value);
        EXPECT_EQ(parsed->dump(), std::to_string(value));
    }
    for (const char* beyond : {"9223372036854775808", "-9223372036854775809"}) {
        const auto parsed = Json::parse(beyond);
        ASSERT_TRUE(parsed.ok());
        EXPECT_EQ(parsed->integer(), nullptr) << "wrapped round: " << beyond;
        ASSERT_NE(parsed->real(), nullptr);
        EXPECT_DOUBLE_EQ(std::abs(*parsed->real()), 9223372036854775808.0);
    }
}

TEST(Json, FractionsStayFractions) {
    for (const char* text : {"1.0", "-0.5", "1e3", "2.5E-3", "1E+2"}) {
        const auto parsed = Json::parse(text);
        ASSERT_TRUE(parsed.ok()) << text;
        ASSERT_NE(parsed->real(), nullptr) << text;
        EXPECT_EQ(*parsed->real(), std::stod(text));
    }
    EXPECT_EQ(Json(3.0).dump(), "3.0");
}

// JSON has no word for these; a reader must still be able to read the file.
TEST(Json, NumbersThatAreNoneBecomeNull) {
    EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).dump(), "null");
    EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
    EXPECT_EQ(Json(-std::numeric_limits<double>::infinity()).dump(), "null");
}

TEST(Json, EscapesMeanTheirCharacters) {
    const auto text = [](std::string_view json) {
        const auto parsed = Json::parse(json);
        return parsed && parsed->string() ? *parsed->string() : "not a string";
    };
    EXPECT_EQ(text(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
    EXPECT_EQ(text(R"("\u0041\u00e9\u20AC")"), "A\u00e9\u20ac");
    EXPECT_EQ(text(R"("\ud83d\ude00")"), "\U0001f600");
    EXPECT_EQ(text(R"("\uD800\uDC00")"), "\U00010000");
    EXPECT_EQ(text(R"("\uDBFF\uDFFF")"), "\U0010ffff");
    EXPECT_EQ(text(R"("\u0000")"), std::string(1, '\0'));
}

// Whether a text is UTF-8, by decoding it the long way: every code point is encoded again and compared.
bool is_utf8(std::string_view text) {
    std::string again;
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const int more = byte < 0x80 ? 0 : byte < 0xc0 ? -1 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : byte < 0xf8 ? 3 : -1;
        if (more < 0 || i + static_cast<std::size_t>(more) >= text.size()) return false;
        unsigned point = more == 0 ? byte : byte & (0x3fu >> more);
        for (int k = 1; k <= more; ++k) {
            const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
            if ((next & 0xc0) != 0x80) return false;
            point = point << 6 | (next & 0x3fu);
        }
        const unsigned least[] = {0, 0x80, 0x800, 0x10000};
        if (point < least[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
        i += static_cast<std::size_t>(more) + 1;
    }
    return true;
}

// File names and other people's bytes end up in messages; what comes out must be JSON all the same.
TEST(Json, WhatIsPrintedIsUtf8) {
    Random random(4);
    int valid = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string text;
        for (std::int64_t n = random.between(1, 6); n > 0; --n) {
            text += static_cast<char>(random.chance(60) ? random.between(0x80, 0xff) : random.between(0x20, 0x7e));
        }
        const std::string printed = Json(text).dump();
        ASSERT_TRUE(is_utf8(printed)) << printed;
        const auto again = Json::parse(printed);
        ASSERT_TRUE(again.ok());
        if (is_utf8(text)) {
            ++valid;
            ASSERT_EQ(*again->string(), text) << "what was UTF-8 is left alone";
        }
    }
    EXPECT_GT(valid, 100);
    EXPECT_EQ(Json("a\xff"
                   "b")
                  .dump(),
              "\"a\xef\xbf\xbd"
              "b\"");
}

TEST(Json, KeepsTheOrderOfMembersAndKnowsTheirLines) {
    const auto json = Json::parse("{\"z\": 1,\n\n \"a\": [2,\n 3],\n \"m\": {\"x\": true}}");
    ASSERT_TRUE(json.ok());
    ASSERT_EQ(json->object()->size(), 3u);
    EXPECT_EQ((*json->object())[0].first, "z");
    EXPECT_EQ((*json->object())[1].first, "a");
    EXPECT_EQ((*json->object())[2].first, "m");
    EXPECT_EQ(json->line(), 1);
    EXPECT_EQ(json->find("z")->line(), 1);
    EXPECT_EQ(json->find("a")->line(), 3);
    EXPECT_EQ((*json->find("a")->array())[1].line(), 4);
    EXPECT_EQ(json->find("m")->find("x")->line(), 5);
    EXPECT_EQ(json->find("none"), nullptr);
    EXPECT_EQ(json->find("z")->find("a"), nullptr) << "a number has no members";
}

TEST(Json, KindsHaveTheirNames) {
    EXPECT_EQ(Json().kind(), "null");
    EXPECT_EQ(Json(true).kind(), "boolean");
    EXPECT_EQ(Json(1).kind(), "integer");
    EXPECT_EQ(Json(1.5).kind(), "number");
    EXPECT_EQ(Json("x").kind(), "string");
    EXPECT_EQ(Json(Json::Array{}).kind(), "array");
    EXPECT_EQ(Json(Json::Object{}).kind(), "object");
}

}  // namespace
}  // namespace tilewise
