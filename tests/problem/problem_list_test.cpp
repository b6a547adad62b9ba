// SPDX-License-Identifier: MIT
#include "problem/problem_list.hpp"

#include <gtest/gtest.h>

#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

const std::string kListed = "gemm:m=4,n=5,k=6,dtype=fp32,layout=rcr";

TEST(ProblemList, CommentsAndEmptyLinesArePassedOver) {
    const auto list = parse_problem_list("# a model\n\n  " + kListed + "  # its head\r\n" + kListed, "a list");
    ASSERT_TRUE(list.ok()) << list.error().message;
    ASSERT_EQ(list->size(), 2U);
    EXPECT_EQ(print_problem((*list)[0]), kListed);
    EXPECT_TRUE(parse_problem_list("", "a list")->empty());
}

TEST(ProblemList, AnErrorNamesTheLine) {
    const auto list = parse_problem_list("\n" + kListed + "\ngemm:m=0", "models.txt");
    ASSERT_FALSE(list.ok());
    EXPECT_EQ(list.error().message.rfind("models.txt:3: ", 0), 0U) << list.error().message;
}

}  // namespace
}  // namespace tilewise
