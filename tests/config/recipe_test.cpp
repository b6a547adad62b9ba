// SPDX-License-Identifier: MIT
#include "config/recipe.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/embedded.hpp"
#include "config/archs.hpp"
#include "config/family_id.hpp"
#include "config/rule_set.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kRecipe = R"({
  "description": "d",
  "waves": {"128x64": "2x2x1 4x1x1", "64x*": "1x1x1"},
  "defaults": {"sets": "default", "ops": "gemm", "warps": "32x32", "layouts": "rcr", "order": 3,
   "fields": {"persistent": true, "split_k": 2}},
  "blocks": [
    {"tiles": "128x64x64B", "pipelines": "mem:intrawave compv3"},
    {"tiles": ["128x64x64B", "64x64x32"], "pipelines": "*", "warps": "64x* 16x16x32", "sets": "profiler full"},
    {"tiles": "64x64x32", "fields": {"split_k": "2 4", "cluster": "2x1"}, "needs": "wgmma", "order": 0},
    {"tiles": "64x48x32", "dtypes": "bf16 fp8_bf8", "channels": "4x8", "stages": "fit 2", "first_with": "wgmma"},
    {"tiles": "96x48x32", "waves": "3x1x1", "ops": "conv_fwd", "dims": "1 3"}
  ]
})";

std::string edited(std::string_view from, std::string_view to) {
    std::string text(kRecipe);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

TEST(Recipe, EveryEmbeddedFileReads) {
    std::size_t files = 0, recipes = 0;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with("recipes/")) continue;
        const auto parsed = parse_recipe(file.text, std::string(file.path));
        ASSERT_TRUE(parsed.ok()) << parsed.error().message;
        ++files;
    }
    for (const Backend backend : kAllBackends) {
        const auto found = recipes_of(backend);
        ASSERT_TRUE(found.ok()) << found.error().message;
        EXPECT_FALSE(found->empty()) << name_of(backend);
        recipes += found->size();
    }
    EXPECT_EQ(recipes, files) << "a file in the folder of no backend";
}

TEST(Recipe, BlocksTakeWhatTheySayAndTheRestFromTheDefaults) {
    const auto parsed = parse_recipe(kRecipe, "recipes/cuda/some_gemm.json");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(parsed->name, "some_gemm");
    ASSERT_EQ(parsed->blocks.size(), 5u);

    const Block& plain = parsed->blocks[0];
    EXPECT_EQ(plain.sets, (std::vector<RuleSet>{RuleSet::standard}));
    EXPECT_EQ(plain.ops, (std::vector<Op>{Op::gemm}));
    ASSERT_EQ(plain.tiles.size(), 1u);
    EXPECT_TRUE(plain.tiles[0].depth_in_bytes);
    EXPECT_EQ(plain.tiles[0].shape, (Shape3{128, 64, 64}));
    EXPECT_EQ(plain.warps, (std::vector<WarpRecipe>{{32, 32, 0}}));
    EXPECT_EQ(plain.layouts, (std::vector<Layout>{Layout::rcr}));
    ASSERT_EQ(plain.pipelines.size(), 2u);
    EXPECT_EQ(plain.pipelines[0].scheduler, Scheduler::intrawave);
    EXPECT_EQ(plain.pipelines[1].scheduler, std::nullopt);
    EXPECT_EQ(plain.order, 3);
    EXPECT_FALSE(plain.needs || plain.first_with);

    const Block& lists = parsed->blocks[1];
    EXPECT_EQ(lists.sets, (std::vector<RuleSet>{RuleSet::profiler, RuleSet::full}));
    EXPECT_EQ(lists.tiles.size(), 2u) << "an array of lines is one list";
    EXPECT_FALSE(lists.tiles[1].depth_in_bytes);
    EXPECT_TRUE(lists.pipelines.empty()) << "* is every one";
    EXPECT_EQ(lists.warps, (std::vector<WarpRecipe>{{64, 0, 0}, {16, 16, 32}}));

    const Block& fields = parsed->blocks[2];
    ASSERT_EQ(fields.fields.size(), 3u);
    EXPECT_EQ(fields.fields[0].first->name, "persistent");
    EXPECT_EQ(fields.fields[0].second, (std::vector<std::string>{"true"}));
    EXPECT_EQ(fields.fields[1].first->name, "split_k");
    EXPECT_EQ(fields.fields[1].second, (std::vector<std::string>{"2", "4"}));
    EXPECT_EQ(fields.fields[2].first->name, "cluster");
    EXPECT_EQ(fields.needs, ArchFeature::wgmma);
    EXPECT_EQ(fields.order, 0);

    const Block& types = parsed->blocks[3];
    EXPECT_EQ(types.dtypes, (std::vector<DTypePair>{{DType::bf16, DType::bf16}, {DType::fp8, DType::bf8}}));
    EXPECT_EQ(types.channels.c, 4);
    EXPECT_EQ(types.channels.k, 8);
    EXPECT_EQ(types.stages, (std::vector<int>{kStagesThatFit, 2}));
    EXPECT_EQ(types.first_with, ArchFeature::wgmma);
}

TEST(Recipe, TheMapGivesWavesToTilesOfOneShapeOrOfEveryWidth) {
    const auto parsed = parse_recipe(edited(R"("64x*": "1x1x1")", R"("64x*": "1x1x1", "64x32": "2x1x1")"), "f.json");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(*parsed->find_waves({{128, 64, 8}}), (std::vector<Shape3>{{2, 2, 1}, {4, 1, 1}}));
    EXPECT_EQ(*parsed->find_waves({{64, 48, 8}}), (std::vector<Shape3>{{1, 1, 1}}));
    EXPECT_EQ(*parsed->find_waves({{64, 32, 8}}), (std::vector<Shape3>{{2, 1, 1}})) << "the exact one comes first";
    EXPECT_EQ(parsed->find_waves({{128, 32, 8}}), nullptr);
}

struct BadRecipe {
    std::string_view from, to, place;
};

TEST(Recipe, MistakesAreRefusedWithTheirPlace) {
    const BadRecipe cases[] = {
        {R"("tiles": "128x64x64B")", R"("tiles": "128x64")", ":7: blocks[0].tiles: cannot read '128x64'"},
        {R"("tiles": "128x64x64B")", R"("tiles": "0x64x64")", ":7: blocks[0].tiles"},
        {R"("tiles": "128x64x64B")", R"("tiles": 5)", ":7: blocks[0].tiles"},
        {R"("tiles": "128x64x64B")", R"("tiles": "")", ":7: blocks[0].tiles: needs at least one"},
        {R"("tiles": "128x64x64B", )", "", ":7: blocks[0].tiles: needs at least one"},
        {R"("pipelines": "*")", R"("pipeline": "*")", ":8: "},
        {R"(mem:intrawave compv3)", R"(mem:sideways)", ":7: blocks[0].pipelines: cannot read 'mem:sideways'"},
        {R"(mem:intrawave compv3)", R"(mem:intrawave:x)", "blocks[0].pipelines"},
        {R"(mem:intrawave compv3)", R"(memm)", "blocks[0].pipelines"},
        {R"("sets": "default")", R"("sets": "defaultt")", ":4: defaults.sets: cannot read 'defaultt'"},
        {R"("sets": "profiler full")", R"("sets": "tiny")", ":8: blocks[1].sets: cannot read 'tiny'"},
        {R"("sets": "default", )", "", ":7: blocks[0].sets: needs at least one"},
        {R"("ops": "gemm", )", "", ":7: blocks[0].ops: needs at least one"},
        {R"("split_k": "2 4")", R"("split_kk": "2 4")", ":9: blocks[2].fields: 'split_kk'"},
        {R"("split_k": "2 4")", R"("split_k": "2 x")", ":9: blocks[2].fields: 'split_k'"},
        {R"("split_k": "2 4")", R"("split_k": "")", ":9: blocks[2].fields: 'split_k'"},
        {R"({"split_k": "2 4", "cluster": "2x1"})", "7", ":9: blocks[2].fields"},
        {R"("persistent": true)", R"("persistent": "maybe")", ":5: defaults.fields"},
        {R"("needs": "wgmma")", R"("needs": "wgmmaa")", ":9: blocks[2].needs: unknown arch feature 'wgmmaa'"},
        {R"("order": 0)", R"("order": -1)", ":9: blocks[2].order: needs a whole number from 0 to 10000"},
        {R"("order": 3)", R"("order": "3")", ":4: defaults.order"},
        {R"("channels": "4x8")", R"("channels": "4")", ":10: blocks[3].channels"},
        {R"("channels": "4x8")", R"("channels": "4294967300x8")", "blocks[3].channels"},
        {R"("channels": "4x8")", R"("channels": "0x8")", "blocks[3].channels"},
        {R"("dtypes": "bf16 fp8_bf8")", R"("dtypes": "bf17")", ":10: blocks[3].dtypes: cannot read 'bf17'"},
        {R"("stages": "fit 2")", R"("stages": "fat")", ":10: blocks[3].stages"},
        {R"("dims": "1 3")", R"("dims": "1 4")", ":11: blocks[4].dims: cannot read '4'"},
        {R"("dims": "1 3")", R"("dims": "*")", ":11: blocks[4].dims: needs at least one"},
        {R"("waves": "3x1x1", )", "", ":11: blocks[4].waves: the file's waves have none for a tile of 96x48"},
        {R"("128x64": "2x2x1 4x1x1")", R"("128": "2x2x1")", ":3: waves.128"},
        {R"("128x64": "2x2x1 4x1x1")", R"("128x4294967360": "2x2x1")", "waves.128x4294967360"},
        {R"("128x64": "2x2x1 4x1x1")", R"("128x64": "")", "waves.128x64"},
        {R"("64x*": "1x1x1")", R"("64x*x1": "1x1x1")", "waves.64x*x1"},
        {R"("defaults": {)", R"("defaults": {"set": "1x1x1", )", ":4: "},
        {R"("blocks": [)", R"("blocks": [7, )", ":6: blocks[0]"},
        {R"("description": "d",)", "", "description"},
        {R"("warps": "64x* 16x16x32")", R"("warps": "64x*x16")", "blocks[1].warps"},
    };
    for (const BadRecipe& bad : cases) {
        const auto parsed = parse_recipe(edited(bad.from, bad.to), "my/recipe.json");
        ASSERT_FALSE(parsed.ok()) << bad.to;
        EXPECT_TRUE(parsed.error().message.starts_with("my/recipe.json:")) << parsed.error().message;
        EXPECT_NE(parsed.error().message.find(bad.place), std::string::npos) << bad.to << "\n"
                                                                             << parsed.error().message;
    }
    for (const char* text : {"", "[]", "{}", R"({"description": "d"})", R"({"description": "d", "blocks": []})"}) {
        EXPECT_FALSE(parse_recipe(text, "f").ok()) << text;
    }
}

// A warp tile without extent, or of negative ones, describes no instruction; it must not reach the expansion, which
// divides by it.
TEST(Recipe, WarpTilesArePositive) {
    for (const char* warp : {"0x0x4", "-1x4", "0x16", "16x-16x16", "-4x*", "4294967296x*"}) {
        EXPECT_FALSE(parse_recipe(edited("64x* 16x16x32", warp), "f").ok()) << warp;
    }
}

// One file for each family: every block makes kernels, and of no other family than its file's.
TEST(Recipe, EveryBlockMakesKernelsOfItsFamilyOnly) {
    std::map<const Block*, std::string> without;
    for (const ArchSpec& arch : embedded_archs().archs()) {
        for (const Recipe& recipe : *recipes_of(arch.backend)) {
            for (const Block& block : recipe.blocks) {
                std::size_t count = 0;
                for (const Op op : kAllOps) {
                    for (const DTypePair& pair : pairs_of(arch)) {
                        for (const KernelConfig& config : expand(arch, op, pair, recipe, block)) {
                            ASSERT_EQ(name_of(family_of(config)), recipe.name) << kernel_name(config);
                            ++count;
                        }
                    }
                }
                const auto found = without.try_emplace(&block, recipe.name).first;
                if (count > 0) found->second.clear();
            }
        }
    }
    for (const auto& [block, name] : without) {
        EXPECT_TRUE(name.empty()) << name << ": the block of the tile " << print_shape(block->tiles[0].shape);
    }
}

}  // namespace
}  // namespace tilewise
