// SPDX-License-Identifier: MIT
#include "base/json_object.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace tilewise {
namespace {

constexpr std::string_view kText = R"({
  "count": 5,
  "rate": 2.5,
  "name": "x",
  "flag": true,
  "words": ["a", "b"],
  "mixed": ["a", 1],
  "empty": "",
  "inner": {"deep": 1}
})";

std::string message_of(const std::function<void(JsonObject&)>& read, std::string path = {}) {
    const auto json = Json::parse(kText);
    JsonObject object(*json, "dir/file.json", std::move(path));
    read(object);
    const Status status = object.finish();
    return status ? "ok" : status.error().message;
}

TEST(JsonObject, ReadsWhatIsThere) {
    const auto json = Json::parse(kText);
    JsonObject object(*json, "f");
    EXPECT_EQ(object.integer("count", 1, 5), 5);
    EXPECT_EQ(object.number("rate"), 2.5);
    EXPECT_EQ(object.number("count"), 5.0) << "a whole number is a number";
    EXPECT_EQ(object.text("name"), "x");
    EXPECT_TRUE(object.flag_or("flag", false));
    EXPECT_EQ(object.texts("words"), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(object.integer_or("none", 1, 9, 7), 7);
    EXPECT_EQ(object.text_or("none", "else"), "else");
    EXPECT_TRUE(object.flag_or("none", true));
    EXPECT_TRUE(object.texts_or_none("none").empty());
    EXPECT_EQ(object.child_or_null("none"), nullptr);
    ASSERT_NE(object.child("inner"), nullptr);
    EXPECT_NE(object.child("inner")->find("deep"), nullptr);
    EXPECT_TRUE(object.has("rate"));
    EXPECT_FALSE(object.has("none"));
    EXPECT_TRUE(object.ok());
    object.child("mixed");
    object.child("empty");
    EXPECT_TRUE(object.finish().ok());
}

TEST(JsonObject, MessagesNameFileLineKeyAndNeed) {
    const std::pair<std::function<void(JsonObject&)>, std::string_view> cases[] = {
        {[](JsonObject& o) { o.integer("count", 6, 9); }, "dir/file.json:2: count: needs a whole number from 6 to 9"},
        {[](JsonObject& o) { o.integer("count", 1, 4); }, "dir/file.json:2: count: needs a whole number from 1 to 4"},
        {[](JsonObject& o) { o.integer("rate", 1, 4); }, "dir/file.json:3: rate: needs a whole number from 1 to 4"},
        {[](JsonObject& o) { o.integer_or("name", 1, 4, 2); },
         "dir/file.json:4: name: needs a whole number from 1 to 4"},
        {[](JsonObject& o) { o.number("name"); }, "dir/file.json:4: name: needs a number above 0"},
        {[](JsonObject& o) { o.text("count"); }, "dir/file.json:2: count: needs a non-empty string"},
        {[](JsonObject& o) { o.text("empty"); }, "dir/file.json:8: empty: needs a non-empty string"},
        {[](JsonObject& o) { o.text_or("flag", "x"); }, "dir/file.json:5: flag: needs a non-empty string"},
        {[](JsonObject& o) { o.flag_or("count", true); }, "dir/file.json:2: count: needs true or false"},
        {[](JsonObject& o) { o.texts("name"); }, "dir/file.json:4: name: needs an array of strings"},
        {[](JsonObject& o) { o.texts("mixed"); }, "dir/file.json:7: mixed: needs strings; line 7 has integer"},
        {[](JsonObject& o) { o.child("none"); }, "dir/file.json:1: none: is missing"},
        {[](JsonObject& o) { o.integer("none", 1, 2); }, "dir/file.json:1: none: is missing"},
        {[](JsonObject& o) { o.fail("rate", "is odd"); }, "dir/file.json:3: rate: is odd"},
    };
    for (const auto& [read, message] : cases) EXPECT_EQ(message_of(read), message);
}

TEST(JsonObject, PathsAreShownInFull) {
    EXPECT_EQ(message_of([](JsonObject& o) { o.text("count"); }, "pipelines.mem"),
              "dir/file.json:2: pipelines.mem.count: needs a non-empty string");
}

TEST(JsonObject, KeepsTheFirstFailure) {
    EXPECT_EQ(message_of([](JsonObject& o) {
                  o.text("none");
                  o.number("name");
              }),
              "dir/file.json:1: none: is missing");
}

TEST(JsonObject, RefusesKeysNobodyAskedFor) {
    const auto json = Json::parse("{\"units\": 4,\n \"unitz\": 5}");
    JsonObject object(*json, "f");
    object.integer("units", 1, 9);
    const Status status = object.finish();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "f:2: unitz: unknown key 'unitz'; did you mean 'units'?");
}

TEST(JsonObject, KeysThatMayBeMissingAreKnown) {
    const auto json = Json::parse("{\"threadz\": 4}");
    JsonObject object(*json, "f");
    object.integer_or("threads", 1, 9, 1);
    object.text_or("arch", "");
    object.texts_or_none("kernels");
    object.flag_or("available", false);
    const Status status = object.finish();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "f:1: threadz: unknown key 'threadz'; did you mean 'threads'?");
}

TEST(JsonObject, SomethingElseIsNoObject) {
    for (const char* text : {"5", "[]", "null", "\"x\""}) {
        const auto json = Json::parse(text);
        JsonObject object(*json, "f", "a.b");
        EXPECT_FALSE(object.ok());
        object.integer("x", 1, 2);  // must not crash, nor replace the message
        const Status status = object.finish();
        ASSERT_FALSE(status.ok());
        EXPECT_NE(status.error().message.find("f:1: a.b is "), std::string::npos) << status.error().message;
        EXPECT_NE(status.error().message.find("not an object"), std::string::npos);
    }
}

}  // namespace
}  // namespace tilewise
