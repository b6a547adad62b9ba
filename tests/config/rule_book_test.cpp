// SPDX-License-Identifier: MIT
#include "config/rule_book.hpp"

#include <gtest/gtest.h>

#include "base/embedded.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kSection = R"({
  "waves": {"128x64": "2x2x1 4x1x1", "other": "1x1x1"},
  "defaults": {"warps": "32x32", "epilogues": "default", "layouts": "rcr"},
  "default": [{"tiles": "128x64x64B", "pipelines": "mem:intrawave compv3"}],
  "profiler": [{"tiles": ["128x64x64B", "64x64x32"], "pipelines": "*", "warps": "64x* 16x16x32"}],
  "tests": [{"tiles": "64x64x32", "set": {"split_k": "2 4", "persistent": true}}],
  "full": [{"tiles": "64x64x32", "dtypes": "bf16 fp8_bf8", "channels": "4x8", "ops": "gemm", "stages": "fit 2"}],
  "full_tests_every": 3,
  "tiny_least": 4
})";

std::string book(std::string_view gemm) {
    return "{\"name\": \"x\", \"description\": \"d\",\n\"gemm\": " + std::string(gemm) +
           ",\n\"conv\": " + std::string(kSection) + "}";
}

std::string edited(std::string_view from, std::string_view to) {
    std::string text(kSection);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return book(text.replace(at, from.size(), to));
}

TEST(RuleBook, EveryEmbeddedBookReads) {
    int books = 0;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with("rules/")) continue;
        const auto parsed = parse_rule_book(file.text, std::string(file.path));
        ASSERT_TRUE(parsed.ok()) << parsed.error().message;
        EXPECT_EQ("rules/" + parsed->name + ".json", file.path);
        const auto found = find_rule_book(parsed->name);
        ASSERT_TRUE(found.ok()) << found.error().message;
        EXPECT_TRUE(parsed->also.empty() || find_rule_book(parsed->also).ok()) << parsed->also;
        ++books;
    }
    EXPECT_GE(books, 4);
    EXPECT_FALSE(find_rule_book("none").ok());
}

TEST(RuleBook, BlocksTakeWhatTheySayAndTheRestFromTheDefaults) {
    const auto parsed = parse_rule_book(book(kSection), "f");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    const Recipes& recipes = parsed->gemm;
    ASSERT_EQ(recipes.waves.size(), 1u);
    EXPECT_EQ(recipes.waves[0].first, std::pair(128, 64));
    EXPECT_EQ(recipes.waves[0].second, (std::vector<Shape3>{{2, 2, 1}, {4, 1, 1}}));
    EXPECT_EQ(recipes.other_waves, (std::vector<Shape3>{{1, 1, 1}}));
    EXPECT_EQ(recipes.full_tests_every, 3);
    EXPECT_EQ(recipes.tiny_least, 4);

    const Block& standard = recipes.blocks[0].at(0);
    ASSERT_EQ(standard.tiles.size(), 1u);
    EXPECT_TRUE(standard.tiles[0].depth_in_bytes);
    EXPECT_EQ(standard.tiles[0].shape, (Shape3{128, 64, 64}));
    EXPECT_EQ(standard.warps, (std::vector<WarpRecipe>{{32, 32, 0}}));
    EXPECT_EQ(standard.layouts, (std::vector<Layout>{Layout::rcr}));
    ASSERT_EQ(standard.pipelines.size(), 2u);
    EXPECT_EQ(standard.pipelines[0].scheduler, Scheduler::intrawave);
    EXPECT_EQ(standard.pipelines[1].scheduler, std::nullopt);

    const Block& profiler = recipes.blocks[1].at(0);
    EXPECT_EQ(profiler.tiles.size(), 2u) << "an array of lines is one list";
    EXPECT_FALSE(profiler.tiles[1].depth_in_bytes);
    EXPECT_TRUE(profiler.pipelines.empty()) << "* is every one";
    EXPECT_EQ(profiler.warps, (std::vector<WarpRecipe>{{64, 0, 0}, {16, 16, 32}}));

    const Block& tests = recipes.blocks[2].at(0);
    ASSERT_EQ(tests.set.size(), 2u);
    EXPECT_EQ(tests.set[0].first->name, "split_k");
    EXPECT_EQ(tests.set[0].second, (std::vector<std::string>{"2", "4"}));
    EXPECT_EQ(tests.set[1].second, (std::vector<std::string>{"true"}));

    const Block& full = recipes.blocks[3].at(0);
    EXPECT_EQ(full.ops, (std::vector<Op>{Op::gemm}));
    EXPECT_EQ(full.dtypes, (std::vector<DTypePair>{{DType::bf16, DType::bf16}, {DType::fp8, DType::bf8}}));
    EXPECT_EQ(full.channels.c, 4);
    EXPECT_EQ(full.channels.k, 8);
    EXPECT_EQ(full.stages, (std::vector<int>{kStagesThatFit, 2}));
}

struct BadBook {
    std::string_view from, to, key;
};

TEST(RuleBook, MistakesAreRefusedWithTheirPlace) {
    const BadBook cases[] = {
        {R"("tiles": "128x64x64B")", R"("tiles": "128x64")", "gemm.default[0].tiles"},
        {R"("tiles": "128x64x64B")", R"("tiles": "0x64x64")", "gemm.default[0].tiles"},
        {R"("tiles": "128x64x64B")", R"("tiles": 5)", "gemm.default[0].tiles"},
        {R"("tiles": "128x64x64B")", R"("tilez": "128x64x64B")", "gemm.default[0]"},
        {R"(mem:intrawave compv3)", R"(mem:sideways)", "gemm.default[0].pipelines"},
        {R"(mem:intrawave compv3)", R"(mem:intrawave:x)", "gemm.default[0].pipelines"},
        {R"(mem:intrawave compv3)", R"(memm)", "gemm.default[0].pipelines"},
        {R"("split_k": "2 4")", R"("split_kk": "2 4")", "gemm.tests[0].set"},
        {R"("split_k": "2 4")", R"("split_k": "2 x")", "gemm.tests[0].set"},
        {R"("set": {"split_k": "2 4", "persistent": true})", R"("set": 7)", "gemm.tests[0].set"},
        {R"("channels": "4x8")", R"("channels": "4")", "gemm.full[0].channels"},
        {R"("channels": "4x8")", R"("channels": "4294967300x8")", "gemm.full[0].channels"},
        {R"("channels": "4x8")", R"("channels": "0x8")", "gemm.full[0].channels"},
        {R"("dtypes": "bf16 fp8_bf8")", R"("dtypes": "bf17")", "gemm.full[0].dtypes"},
        {R"("stages": "fit 2")", R"("stages": "fat")", "gemm.full[0].stages"},
        {R"("128x64": "2x2x1 4x1x1")", R"("128": "2x2x1")", "gemm.waves.128"},
        {R"("128x64": "2x2x1 4x1x1")", R"("128x4294967360": "2x2x1")", "gemm.waves.128x4294967360"},
        {R"("128x64": "2x2x1 4x1x1")", R"("128x64": "")", "gemm.waves.128x64"},
        {R"("other": "1x1x1")", R"("64x64": "1x1x1")", "gemm.waves.other"},
        {R"("defaults": {)", R"("defaults": {"tiles": "1x1x1", )", "gemm.defaults"},
        {R"("full_tests_every": 3)", R"("full_tests_every": 0)", "gemm.full_tests_every"},
        {R"("tiny_least": 4)", R"("tiny_leest": 4)", "gemm.tiny_least"},
        {R"("default": [)", R"("default": [7, )", "gemm.default[0]"},
        {R"([{"tiles": "64x64x32", "dtypes")", R"([], "fully": [{"tiles": "64x64x32", "dtypes")", "gemm.full"},
        {R"("warps": "64x* 16x16x32")", R"("warps": "64x*x16")", "gemm.profiler[0].warps"},
    };
    for (const BadBook& bad : cases) {
        const auto parsed = parse_rule_book(edited(bad.from, bad.to), "my/book.json");
        ASSERT_FALSE(parsed.ok()) << bad.to;
        EXPECT_TRUE(parsed.error().message.starts_with("my/book.json:")) << parsed.error().message;
        EXPECT_NE(parsed.error().message.find(bad.key), std::string::npos) << bad.to << "\n" << parsed.error().message;
    }
    for (const char* text : {"", "[]", "{}", R"({"name": "x", "description": "d"})"}) {
        EXPECT_FALSE(parse_rule_book(text, "f").ok()) << text;
    }
}

// A warp tile without extent, or of negative ones, describes no instruction; it must not reach the expansion, which
// divides by it.
TEST(RuleBook, WarpTilesArePositive) {
    for (const char* warp : {"0x0x4", "-1x4", "0x16", "16x-16x16", "-4x*", "4294967296x*"}) {
        EXPECT_FALSE(parse_rule_book(edited("64x* 16x16x32", warp), "f").ok()) << warp;
    }
}

}  // namespace
}  // namespace tilewise
