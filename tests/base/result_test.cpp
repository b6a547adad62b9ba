// SPDX-License-Identifier: MIT
#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <type_traits>
#include <vector>

namespace tilewise {
namespace {

Result<std::vector<int>> numbers() { return std::vector<int>{1, 2, 3}; }

// A reference into a temporary would be gone before the loop begins; the address sanitizer sees it.
TEST(Result, ATemporaryGivesItsValueAway) {
    int sum = 0;
    for (const int number : *numbers()) sum += number;
    for (const int number : numbers().value()) sum += number;
    EXPECT_EQ(sum, 12);
    static_assert(std::is_same_v<decltype(*numbers()), std::vector<int>>);
}

TEST(Result, AValueThatCannotBeCopiedIsMovedOut) {
    const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
    const std::unique_ptr<int> owned = *make();
    EXPECT_EQ(*owned, 7);
}

TEST(Result, ANamedOneIsReadAndChangedInPlace) {
    auto result = numbers();
    result->push_back(4);
    (*result)[0] = 9;
    const auto& same = result;
    EXPECT_EQ(&*same, &*result);
    EXPECT_EQ(*same, (std::vector<int>{9, 2, 3, 4}));
}

TEST(Result, AnErrorIsNoValue) {
    const Result<int> result = usage_error("no");
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.error(), (Error{ErrorCode::usage, "no"}));
}

}  // namespace
}  // namespace tilewise
