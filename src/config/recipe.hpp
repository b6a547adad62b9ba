// SPDX-License-Identifier: MIT
// The recipes behind the rule sets: one file of recipes/<backend>/ for each family, with the blocks that make its kernels. A
// block is a product of lists: tiles x waves x warp tiles x pipelines x …; rule_set.hpp expands them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "config/vec_strategy.hpp"

namespace tilewise {

enum class RuleSet : std::uint8_t { standard, profiler, tests, full, full_tests, tiny, builtin };
template <>
struct EnumNames<RuleSet> {
    static constexpr std::string_view kind = "rule set";
    static constexpr std::array<std::string_view, 7> names = {"default",    "profiler", "tests",  "full",
                                                              "full-tests", "tiny",     "builtin"};
};
inline constexpr std::array<RuleSet, 7> kAllRuleSets = {RuleSet::standard, RuleSet::profiler,   RuleSet::tests,
                                                        RuleSet::full,     RuleSet::full_tests, RuleSet::tiny,
                                                        RuleSet::builtin};

// Something that only some archs of a backend have.
enum class ArchFeature : std::uint8_t { wgmma };
template <>
struct EnumNames<ArchFeature> {
    static constexpr std::string_view kind = "arch feature";
    static constexpr std::array<std::string_view, 1> names = {"wgmma"};
};
bool has_feature(const ArchSpec& arch, ArchFeature feature);

// A tile whose depth is in elements, or in bytes ("256x128x128B") so that one line serves every element size.
struct TileRecipe {
    Shape3 shape;
    bool depth_in_bytes = false;
};

// A warp tile, given whole or in part: "32x32" asks for the deepest listed one that divides the tile's depth, and
// "64x*" for the widest and deepest that divides the tile. An extent of 0 is one that was not given.
using WarpRecipe = Shape3;

struct PipelineRecipe {
    Pipeline pipeline = Pipeline::basic_v1;
    std::optional<Scheduler> scheduler;  // unset: each that the arch has
};

inline constexpr int kStagesThatFit = 0;

// A tile with this n in a file's map of waves stands for every n.
inline constexpr int kAnyWidth = 0;

// In the file each list is a string of words (or several); a list left out comes from the file's "defaults". "*" (an empty
// list here) means every one the arch has.
struct Block {
    std::vector<RuleSet> sets;  // that have it; full has every block but those of builtin
    std::vector<Op> ops;
    std::vector<TileRecipe> tiles;
    std::vector<Shape3> waves;  // empty: from the file's map
    std::vector<WarpRecipe> warps;
    std::vector<PipelineRecipe> pipelines;
    std::vector<bool> buffers;                   // double_smem_buffer, where a pipeline leaves the choice
    std::vector<int> stages = {kStagesThatFit};  // of a ring
    std::vector<Epilogue> epilogues;
    std::vector<Layout> layouts = {Layout::any};
    std::vector<int> dims = {2};
    std::vector<VecStrategy> vectors = {VecStrategy::generic};
    std::vector<DTypePair> dtypes;  // that the block is for
    GroupChannels channels;
    // Further fields, each with the values to go through.
    std::vector<std::pair<const ConfigField*, std::vector<std::string>>> fields;
    std::optional<ArchFeature> needs;       // only archs with it have the block, before those that need nothing
    std::optional<ArchFeature> first_with;  // every arch has the block; those with this have it before the others
    int order = 0;                          // among the blocks of all recipes of the backend, low first
};

struct Recipe {
    std::string name;          // of the family, and of the file
    bool round_tiles = false;  // tiles are targets, rounded down to whole waves of warp tiles
    // Waves for a tile of m x n, curated, for blocks that do not say them.
    std::vector<std::pair<std::pair<int, int>, std::vector<Shape3>>> waves;
    std::vector<Block> blocks;

    const std::vector<Shape3>* find_waves(const TileRecipe& tile) const;  // null where the map has none
};

Result<Recipe> parse_recipe(std::string_view text, const std::string& file);

// The embedded recipes of a backend, sorted by name.
Result<std::span<const Recipe>> recipes_of(Backend backend);

}  // namespace tilewise
