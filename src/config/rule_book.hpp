// SPDX-License-Identifier: MIT
// The recipes behind the rule sets, as read from rules/<family>.json. Every set is a list of blocks, and a block is
// a product of lists: tiles x waves x warp tiles x pipelines x …; rule_set.hpp expands them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
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

// In the file each list is a string of words (or several); a list left out comes from the section's "defaults", and "*" (an
// empty list here) means every one the arch has.
struct Block {
    std::vector<Op> ops;
    std::vector<TileRecipe> tiles;
    std::vector<Shape3> waves;  // empty: from the wave map
    std::vector<WarpRecipe> warps;
    std::vector<PipelineRecipe> pipelines;
    std::vector<bool> buffers;  // double_smem_buffer, where a pipeline leaves the choice
    std::vector<int> stages;    // of a ring
    std::vector<Epilogue> epilogues;
    std::vector<Layout> layouts;
    std::vector<int> dims;
    std::vector<VecStrategy> vectors;
    std::vector<DTypePair> dtypes;  // that the block is for
    GroupChannels channels;
    // Further fields, each with the values to go through.
    std::vector<std::pair<const ConfigField*, std::vector<std::string>>> set;
};

// One section of the file: the recipes of GEMM, or those of the three convolutions together.
struct Recipes {
    // Waves for a tile of m x n, curated; a tile without an entry gets those of "other".
    std::vector<std::pair<std::pair<int, int>, std::vector<Shape3>>> waves;
    std::vector<Shape3> other_waves;
    std::array<std::vector<Block>, 4> blocks;  // default, profiler, tests, full
    std::vector<Block> builtin;                // empty where the book has none: then it is tiny
    int full_tests_every = 5;                  // full-tests takes every n-th of full in each category
    int tiny_least = 10;                       // tiny has at least so many where full-tests does
};

struct RuleBook {
    std::string name;
    std::string also;          // a book whose blocks follow this one's in every set; empty for none
    bool round_tiles = false;  // tiles are targets, rounded down to whole waves of warp tiles
    Recipes gemm;
    Recipes conv;

    const Recipes& recipes(Op op) const { return is_conv(op) ? conv : gemm; }
};

Result<RuleBook> parse_rule_book(std::string_view text, const std::string& file);

// The embedded rule book of that name.
Result<const RuleBook*> find_rule_book(std::string_view name);

}  // namespace tilewise
