// SPDX-License-Identifier: MIT
// The JSON reader refuses these, and says where.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "base/random.hpp"

namespace tilewise {
namespace {

struct BadJson {
    std::string text;
    int line;
    int column;
    std::string expected;  // part of the message
};

TEST(JsonErrors, NameLineColumnAndWhatWasExpected) {
    const BadJson cases[] = {
        {"", 1, 1, "a value"},
        {"  \n\t ", 2, 3, "a value"},
        {"[1,\n 2,\n x]", 3, 2, "a value"},
        {"[1 2]", 1, 4, "',' or ']'"},
        {"[1,]", 1, 4, "a value"},
        {"{\"a\": 1,}", 1, 9, "a key in double quotes"},
        {"{a: 1}", 1, 2, "a key in double quotes"},
        {"{\"a\" 1}", 1, 6, "':'"},
        {"{\"a\": 1\n\"b\": 2}", 2, 1, "',' or '}'"},
        {"{\"a\": 1,\n  \"b\": 2,\n  \"a\": 3}", 3, 3, "key \"a\" once only"},
        {"{} {}", 1, 4, "nothing more after the value"},
        {"tru", 1, 1, "true"},
        {"falsy", 1, 1, "false"},
        {"nul", 1, 1, "null"},
        {"NaN", 1, 1, "a value"},
        {"'a'", 1, 1, "a value"},
        {"// c\n1", 1, 1, "a value"},
        {"\"abc", 1, 5, "a closing '\"'"},
        {"\"a\nb\"", 1, 3, "no control character inside a string"},
        {"\"a\\x\"", 1, 4, "one of \\\""},
        {"\"\\u12g4\"", 1, 4, "four hex digits"},
        {"\"\\u12", 1, 4, "four hex digits"},
        {"\"\\", 1, 3, "one of \\\""},
    };
    for (const BadJson& bad : cases) {
        const auto result = Json::parse(bad.text);
        ASSERT_FALSE(result.ok()) << bad.text;
        EXPECT_EQ(result.error().code, ErrorCode::usage);
        const std::string place = fmt::format("line {}, column {}:", bad.line, bad.column);
        EXPECT_NE(result.error().message.find(place), std::string::npos) << bad.text << "\n" << result.error().message;
        EXPECT_NE(result.error().message.find(bad.expected), std::string::npos) << bad.text << "\n"
                                                                                << result.error().message;
    }
}

TEST(JsonErrors, NumbersAreThoseOfTheStandard) {
    for (const char* text : {"01", "-01", "00", "-", "+1", ".5", "1.", "1.e3", "1e", "1e+", "0x10", "1e999", "-1e999",
                             "Infinity", "1_000", "1,5"}) {
        EXPECT_FALSE(Json::parse(text).ok()) << text;
    }
}

TEST(JsonErrors, HalfASurrogatePairIsRefused) {
    for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud800x")", R"("\ud800\n")", R"("\ud800\u0041")",
                             R"("\ud800\ud800")", R"("\udc00\ud800")", R"("\ud800\u)", R"("\ud800\)"}) {
        const auto result = Json::parse(text);
        ASSERT_FALSE(result.ok()) << text;
        EXPECT_NE(result.error().message.find("line 1"), std::string::npos);
    }
}

TEST(JsonErrors, DeepNestingIsRefusedInsteadOfOverflowingTheStack) {
    const auto nested = [](std::size_t levels, char open, std::string_view inner, char close) {
        std::string text;
        for (std::size_t i = 0; i < levels; ++i) {
            text += open;
            if (open == '{') text += "\"k\":";
        }
        return text + std::string(inner) + std::string(levels, close);
    };
    EXPECT_TRUE(Json::parse(nested(64, '[', "1", ']')).ok());
    EXPECT_TRUE(Json::parse(nested(64, '{', "1", '}')).ok());
    for (const std::size_t levels : {66, 1000, 1000000}) {
        for (const auto& result : {Json::parse(nested(levels, '[', "", ']')), Json::parse(std::string(levels, '[')),
                                   Json::parse(nested(levels, '{', "1", '}'))}) {
            ASSERT_FALSE(result.ok()) << levels;
            EXPECT_NE(result.error().message.find("at most 64 levels of nesting"), std::string::npos)
                << result.error().message;
        }
    }
}

// A text with a byte missing or changed either reads as some value, which prints and reads back, or is refused.
TEST(JsonErrors, DamagedTextNeverCrashes) {
    const std::string whole = R"({"a": [1, -2.5e3, "x\u00e9\ud83d\ude00\n"], "b": {"c": null, "d": true}, "e": []})";
    Random random(3);
    int refused = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string text = whole;
        for (std::int64_t edits = random.between(1, 3); edits > 0 && !text.empty(); --edits) {
            const auto at = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size()) - 1));
            if (random.chance(40)) {
                text.erase(at, 1);
            } else if (random.chance(50)) {
                text[at] = static_cast<char>(random.between(0, 255));
            } else {
                text.resize(at + 1);
            }
        }
        const auto result = Json::parse(text);
        if (!result) {
            ++refused;
            ASSERT_FALSE(result.error().message.empty());
            continue;
        }
        const auto again = Json::parse(result->dump());
        ASSERT_TRUE(again.ok()) << text;
        // Bytes that are no UTF-8 are replaced once, when printed; after that nothing changes any more.
        ASSERT_EQ(again->dump(), result->dump()) << text;
    }
    EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace tilewise
