// SPDX-License-Identifier: MIT
#include "base/note.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tilewise {
namespace {

TEST(Note, ForbiddenOnesAreAnErrorOfTheFirst) {
    std::vector<Note> notes;
    EXPECT_TRUE(forbid(notes).ok());
    notes.push_back({"cache", ErrorCode::toolchain, "the disk is full"});
    const auto one = forbid(notes);
    ASSERT_FALSE(one.ok());
    EXPECT_EQ(one.error().code, ErrorCode::toolchain);
    EXPECT_NE(one.error().message.find("the disk is full"), std::string::npos);
    notes.push_back({"tuning", ErrorCode::check_failed, "stale"});
    notes.push_back({"tuning", ErrorCode::check_failed, "stale"});
    EXPECT_EQ(forbid(notes).error().code, ErrorCode::toolchain);
    EXPECT_NE(forbid(notes).error().message.find("and 2 more"), std::string::npos);
}

TEST(Note, IsReadByPrograms) {
    const std::vector<Note> notes = {{"cache", ErrorCode::toolchain, "full"}};
    EXPECT_EQ(notes_to_json(notes).dump(), R"([{"kind":"cache","message":"full"}])");
    EXPECT_EQ(notes_to_json({}).dump(), "[]");
}

TEST(Note, JoinedListsHaveEachNoteOnce) {
    const Note padding{"padding", ErrorCode::unsupported, "padded"}, cache{"cache", ErrorCode::toolchain, "full"};
    const std::vector<Note> first{padding}, second{cache, padding};
    EXPECT_EQ(joined(first, second), (std::vector<Note>{padding, cache}));
    EXPECT_EQ(joined(second, {}), second);
    EXPECT_TRUE(joined({}, {}).empty());
}

}  // namespace
}  // namespace tilewise
