// SPDX-License-Identifier: MIT
// Which kinds of code there are for an arch.
#include "build/code_suffix.hpp"

#include <gtest/gtest.h>

#include "build/compile.hpp"
#include "config/archs.hpp"
#include "family/family.hpp"

namespace tilewise {
namespace {

TEST(CodeSuffix, ItsOwnFirstThenWhatLaterChipsLoad) {
    using Suffixes = std::vector<std::string_view>;
    const auto of = [](const char* arch) { return code_suffixes(**embedded_archs().find(arch)); };
    EXPECT_EQ(of("cpu-generic"), Suffixes{kSharedObject});
    EXPECT_EQ(of("sm_80"), (Suffixes{kCubin, kPtx}));
    EXPECT_EQ(of("sm_90a"), Suffixes{kCubin}) << "code for that chip alone has no use on others";
    EXPECT_EQ(of("gfx942"), Suffixes{kHsaco});
}

TEST(CodeSuffix, ACompilerBuildsWhatFamiliesHaveCodeFor) {
    for (const ArchSpec& arch : embedded_archs().archs()) {
        for (const std::string_view suffix : code_suffixes(arch)) {
            EXPECT_EQ(compiler_of(suffix) != nullptr, has_families(arch.backend)) << arch.name << ' ' << suffix;
        }
    }
    EXPECT_EQ(compiler_of(kPtx), compiler_of(kCubin));
    const auto none = find_toolchain(".spv", {});
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::toolchain);
    EXPECT_EQ(none.error().message, "nothing here builds .spv files");
}

}  // namespace
}  // namespace tilewise
