// SPDX-License-Identifier: MIT
#include "config/rule_set.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_set>

#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "config/rules.hpp"

namespace tilewise {
namespace {

// Collects valid configs, each once.
class Collector {
public:
    explicit Collector(const ArchSpec& arch) : arch_(arch) {}

    void add(const KernelConfig& c) {
        if (is_valid(c, arch_) && seen_.insert(kernel_name(c)).second) configs_.push_back(c);
    }
    std::vector<KernelConfig> take() { return std::move(configs_); }

private:
    const ArchSpec& arch_;
    std::unordered_set<std::string> seen_;
    std::vector<KernelConfig> configs_;
};

// Whether a list of a block names the value; an empty one means all.
template <class T>
bool has(const std::vector<T>& list, const T& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

class Expansion {
public:
    Expansion(const ArchSpec& arch, const Recipe& recipe, Op op, DTypePair dtypes, DType dtype_out, Collector& out)
        : arch_(arch), recipe_(recipe), op_(op), dtypes_(dtypes), dtype_out_(dtype_out), out_(out) {}

    void run(const Block& block) {
        if (!has(block.dtypes, dtypes_)) return;
        for (const int ndim : is_conv(op_) ? block.dims : std::vector<int>{0}) {
            for (const Layout layout : block.layouts) {
                KernelConfig c;
                c.op = op_;
                c.dtype = dtypes_.a;
                c.dtype_b = dtypes_.b;
                c.dtype_out = dtype_out_;
                c.dtype_acc = c.default_dtype_acc();
                c.arch = arch_.name;
                c.ndim = ndim;
                c.layout = layout == Layout::any || !is_conv(op_) ? layout : in_dimensions(layout, ndim);
                fields(block, 0, c);
            }
        }
    }

private:
    // A block names its convolution layout once, in two dimensions.
    static Layout in_dimensions(Layout layout, int ndim) {
        const int first = static_cast<int>(is_channels_last(layout) ? Layout::nwgc : Layout::ngcw);
        return static_cast<Layout>(first + ndim - 1);
    }

    // Goes through the values of each further field.
    void fields(const Block& block, std::size_t at, const KernelConfig& c) {
        if (at == block.fields.size()) return shapes(block, c);
        const auto& [field, values] = block.fields[at];
        for (const std::string& value : values) {
            KernelConfig next = c;
            if (field->parse(next, value)) fields(block, at + 1, next);
        }
    }

    void shapes(const Block& block, const KernelConfig& c) {
        for (const TileRecipe& tile : block.tiles) {
            for (const Shape3& wave : waves_of(block, tile)) {
                for (const Shape3& warp : warps_of(block, c)) {
                    KernelConfig shaped = c;
                    shaped.wave = wave;
                    if (fit_shape(shaped, tile, warp)) pipelines(block, shaped);
                }
            }
        }
    }

    const std::vector<Shape3>& waves_of(const Block& block, const TileRecipe& tile) const {
        return block.waves.empty() ? *recipe_.find_waves(tile) : block.waves;
    }

    std::vector<Shape3> warps_of(const Block& block, const KernelConfig& c) const {
        return block.warps.empty() ? *warp_tiles_of(c, arch_) : block.warps;
    }

    // Sets tile and warp tile; false when the recipe has nothing for this type.
    bool fit_shape(KernelConfig& c, const TileRecipe& tile, Shape3 warp) const {
        const Shape3 given = warp;
        c.tile = tile.shape;
        if (tile.depth_in_bytes) c.tile.k = static_cast<int>(tile.shape.k / bytes_of(dtypes_.a));
        for (const Shape3& listed : *warp_tiles_of(c, arch_)) {
            const bool wanted = listed.m == warp.m && (warp.n == listed.n || given.n == 0) && given.k == 0;
            const bool fits =
                (given.n > 0 || c.tile.n % (c.wave.n * listed.n) == 0) && c.tile.k % (c.wave.k * listed.k) == 0;
            const bool better = listed.n > warp.n || (listed.n == warp.n && listed.k > warp.k);
            if (wanted && fits && better) warp = listed;
        }
        if (warp.k == 0) return false;
        c.warp_tile = warp;
        if (recipe_.round_tiles) {
            const auto round = [](int target, int unit) { return std::max(1, target / unit) * unit; };
            c.tile = {round(c.tile.m, c.wave.m * warp.m), round(c.tile.n, c.wave.n * warp.n),
                      round(c.tile.k, c.wave.k * warp.k)};
        }
        return true;
    }

    void pipelines(const Block& block, const KernelConfig& c) {
        std::vector<PipelineRecipe> recipes = block.pipelines;
        if (recipes.empty()) {
            for (std::size_t i = 0; i < kPipelineCount; ++i) recipes.push_back({static_cast<Pipeline>(i), {}});
        }
        for (const PipelineRecipe& recipe : recipes) {
            const PipelineSpec& spec = arch_.pipeline(recipe.pipeline);
            if (!spec.supported || !spec.ops[static_cast<std::size_t>(op_)]) continue;
            for (std::size_t s = 0; s < kSchedulerCount; ++s) {
                const auto scheduler = static_cast<Scheduler>(s);
                if (!spec.schedulers[s] || (recipe.scheduler && *recipe.scheduler != scheduler)) continue;
                KernelConfig piped = c;
                piped.pipeline = recipe.pipeline;
                piped.scheduler = scheduler;
                piped.producer_waves = spec.producers ? std::max(1, c.producer_waves) : 0;
                buffers(block, spec, piped);
            }
        }
    }

    void buffers(const Block& block, const PipelineSpec& spec, KernelConfig c) {
        for (const bool twofold : {false, true}) {
            const bool fixed = spec.buffering != Buffering::either;
            if (fixed ? twofold != (spec.buffering == Buffering::twofold) : !has(block.buffers, twofold)) continue;
            c.double_smem_buffer = twofold;
            for (const int stages : block.stages) {
                c.stages = stages == kStagesThatFit ? most_stages(spec, c) : stages;
                endings(block, c);
            }
        }
    }

    int most_stages(const PipelineSpec& spec, KernelConfig c) const {
        for (c.stages = spec.max_stages; c.stages > spec.min_stages; --c.stages) {
            if (shared_bytes(c, arch_) <= arch_.shared_bytes) break;
        }
        return c.stages;
    }

    void endings(const Block& block, KernelConfig c) {
        for (std::size_t i = 0; i < arch_.epilogues.size(); ++i) {
            c.epilogue = static_cast<Epilogue>(i);
            if (!arch_.epilogues[i] || !has(block.epilogues, c.epilogue)) continue;
            for (const VecStrategy strategy : block.vectors) {
                apply_vectors(c, arch_, strategy, block.channels);
                out_.add(c);
            }
        }
    }

    const ArchSpec& arch_;
    const Recipe& recipe_;
    Op op_;
    DTypePair dtypes_;
    DType dtype_out_;
    Collector& out_;
};

// A block with the recipe that it stands in.
struct PlacedBlock {
    const Recipe* recipe;
    const Block* block;
};

// The blocks that an arch has, in the order of expansion: first those that ask for something that not every arch has. Among
// equals, the block's order decides, then the recipe's name, then the place in its file.
std::array<std::vector<PlacedBlock>, 2> blocks_of(std::span<const Recipe> recipes, const ArchSpec& arch, Op op) {
    const auto met = [&](const std::optional<ArchFeature>& feature) { return feature && has_feature(arch, *feature); };
    std::array<std::vector<PlacedBlock>, 2> ranks;
    for (const Recipe& recipe : recipes) {
        for (const Block& block : recipe.blocks) {
            if (!has(block.ops, op) || (block.needs && !met(block.needs))) continue;
            ranks[met(block.needs) || met(block.first_with) ? 0 : 1].push_back({&recipe, &block});
        }
    }
    for (auto& blocks : ranks) {
        std::stable_sort(blocks.begin(), blocks.end(),
                         [](const PlacedBlock& a, const PlacedBlock& b) { return a.block->order < b.block->order; });
    }
    return ranks;
}

// Those whose blocks a set expands: full has all that the others have, and more.
std::vector<RuleSet> sets_in(RuleSet set) {
    if (set != RuleSet::full) return {set};
    return {RuleSet::full, RuleSet::standard, RuleSet::profiler, RuleSet::tests};
}

std::vector<KernelConfig> expand_blocks(std::span<const Recipe> recipes, const ArchSpec& arch, Op op,
                                        const DTypePair& dtypes, RuleSet set, DType out) {
    Collector collector(arch);
    for (const auto& blocks : blocks_of(recipes, arch, op)) {
        for (const RuleSet part : sets_in(set)) {
            for (const auto& [recipe, block] : blocks) {
                if (has(block->sets, part)) Expansion(arch, *recipe, op, dtypes, out, collector).run(*block);
            }
        }
    }
    return collector.take();
}

bool has_builtin(std::span<const Recipe> recipes, Op op) {
    return std::any_of(recipes.begin(), recipes.end(), [&](const Recipe& recipe) {
        return std::any_of(recipe.blocks.begin(), recipe.blocks.end(),
                           [&](const Block& block) { return has(block.ops, op) && has(block.sets, RuleSet::builtin); });
    });
}

constexpr int kSampledEvery = 5;  // of full, in full-tests
constexpr int kTinyLeast = 10;    // where full-tests has as many

// Every n-th of each category and dimension, and the first of each pipeline x scheduler pair per dimension.
std::vector<KernelConfig> sample(const std::vector<KernelConfig>& full, int every) {
    std::set<std::tuple<Pipeline, Scheduler, int>> pairs;
    std::set<std::tuple<std::string_view, int>> categories;
    std::vector<KernelConfig> sampled;
    std::vector<std::pair<std::string_view, int>> counts;
    for (const KernelConfig& c : full) {
        const std::string_view name = category(c);
        auto count = std::find_if(counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == name; });
        if (count == counts.end()) count = counts.insert(counts.end(), {name, 0});
        const bool nth = count->second++ % every == 0;
        const bool new_category = categories.insert({name, c.ndim}).second;
        const bool new_pair = pairs.insert({c.pipeline, c.scheduler, c.ndim}).second;
        if (nth || new_category || new_pair) sampled.push_back(c);
    }
    return sampled;
}

// Kernels for a few vectors that read them, or the large operand, otherwise than by 16 bytes; empty for all others.
std::string_view vectors_category(const KernelConfig& c) {
    const FamilyId family = family_of(c);
    const auto [anywhere, by_element] = gemv_reads(c);
    if (!is_gemv(family) || !(anywhere || by_element)) return {};
    if (family == FamilyId::gemv) return anywhere ? "gemv_anywhere" : "gemv_by_element";
    return anywhere ? "gemv_rows_anywhere" : "gemv_rows_by_element";
}

std::vector<KernelConfig> smallest(const std::vector<KernelConfig>& tests, int least) {
    std::set<std::tuple<std::string_view, int>> categories;
    std::vector<bool> chosen(tests.size());
    std::size_t count = 0, beside = 0;
    for (std::size_t i = 0; i < tests.size(); ++i) {
        chosen[i] = categories.insert({category(tests[i]), tests[i].ndim}).second;
        // Ways of a few vectors to be read come beside the others, not in their place.
        const bool counts = vectors_category(tests[i]).empty();
        count += chosen[i] && counts ? 1U : 0U;
        beside += chosen[i] && !counts ? 1U : 0U;
    }
    // Fill up evenly spread, so that the few kernels differ.
    const std::size_t want = std::min(tests.size() - beside, static_cast<std::size_t>(least));
    for (std::size_t step = tests.size() / (want + 1) + 1; count < want; step = std::max<std::size_t>(1, step / 2)) {
        for (std::size_t i = 0; i < tests.size() && count < want; i += step) {
            count += chosen[i] ? 0U : 1U;
            chosen[i] = true;
        }
    }
    std::vector<KernelConfig> result;
    for (std::size_t i = 0; i < tests.size(); ++i) {
        if (chosen[i]) result.push_back(tests[i]);
    }
    return result;
}

}  // namespace

std::vector<DTypePair> pairs_of(const ArchSpec& arch) {
    std::vector<DTypePair> pairs;
    for (const WarpTiles& entry : arch.warp_tiles) pairs.push_back(entry.dtypes);
    return pairs;
}

std::string_view category(const KernelConfig& c) {
    if (c.specialization == Specialization::depthwise) return "depthwise";
    if (c.stream_k != StreamK::off) return "stream_k";
    if (c.split_image) return "split_image";
    if (c.num_groups_to_merge > 1) return "merged_groups";
    if (c.two_stage) return "two_stage";
    if (c.explicit_gemm) return "explicit_gemm";
    if (c.pipeline == Pipeline::preshuffle) return "preshuffle";
    if (const std::string_view vectors = vectors_category(c); !vectors.empty()) return vectors;
    if (c.gather == Gather::columns) return "columns";
    if (c.split_k > 1) return "split_k";
    if (c.gather == Gather::halo) return "halo";
    if (c.gather == Gather::tensor) return "tensor";
    return "regular";
}

Result<std::vector<KernelConfig>> expand(const ArchSpec& arch, Op op, const DTypePair& dtypes, RuleSet set,
                                         std::optional<DType> out) {
    const auto recipes = recipes_of(arch.backend);
    if (!recipes) return recipes.error();
    if (!arch.find_warp_tiles(dtypes)) return std::vector<KernelConfig>{};
    if (set == RuleSet::builtin && !has_builtin(*recipes, op)) set = RuleSet::tiny;
    const bool derived = set == RuleSet::full_tests || set == RuleSet::tiny;
    auto configs = expand_blocks(*recipes, arch, op, dtypes, derived ? RuleSet::full : set,
                                 out.value_or(default_output(dtypes.a)));
    if (derived) configs = sample(configs, kSampledEvery);
    if (set == RuleSet::tiny) configs = smallest(configs, kTinyLeast);
    return configs;
}

std::vector<KernelConfig> expand(const ArchSpec& arch, Op op, const DTypePair& dtypes, const Recipe& recipe,
                                 const Block& block) {
    Collector collector(arch);
    if (has(block.ops, op)) {
        Expansion(arch, recipe, op, dtypes, default_output(dtypes.a), collector).run(block);
    }
    return collector.take();
}

Result<std::vector<KernelConfig>> expand(const ArchSpec& arch, Op op, RuleSet set) {
    std::vector<KernelConfig> all;
    for (const DTypePair& pair : pairs_of(arch)) {
        auto configs = expand(arch, op, pair, set);
        if (!configs) return configs.error();
        all.insert(all.end(), configs->begin(), configs->end());
    }
    return all;
}

}  // namespace tilewise
