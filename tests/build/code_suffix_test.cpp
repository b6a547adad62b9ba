// SPDX-License-Identifier: MIT
// Which kinds of code there are for an arch.
#include "build/code_suffix.hpp"

#include <gtest/gtest.h>

#include "config/archs.hpp"

namespace tilewise {
namespace {

TEST(CodeSuffix, ItsOwnFirstThenWhatLaterChipsLoad) {
    using Suffixes = std::vector<std::string_view>;
    const auto of = [](const char* arch) { return code_suffixes(**embedded_archs().find(arch)); };
    EXPECT_EQ(of("cpu-generic"), Suffixes{kSharedObject});
    EXPECT_EQ(of("sm_80"), (Suffixes{kCubin, kPtx}));
    EXPECT_EQ(of("sm_90a"), Suffixes{kCubin}) << "code for that chip alone has no use on others";
}

}  // namespace
}  // namespace tilewise
