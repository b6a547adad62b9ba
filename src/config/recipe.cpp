// SPDX-License-Identifier: MIT
#include "config/recipe.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/embedded.hpp"
#include "base/json_object.hpp"
#include "base/text.hpp"

namespace tilewise {
namespace {

std::optional<Shape3> read_shape(std::string_view text) {
    const auto shape = parse_shape(text);
    return shape && shape->m > 0 && shape->n > 0 && shape->k > 0 ? std::optional(*shape) : std::nullopt;
}

std::optional<TileRecipe> read_tile(std::string_view text) {
    TileRecipe recipe;
    if (text.ends_with('B')) {
        recipe.depth_in_bytes = true;
        text.remove_suffix(1);
    }
    const auto shape = read_shape(text);
    if (!shape) return std::nullopt;
    recipe.shape = *shape;
    return recipe;
}

constexpr std::int64_t kLargestExtent = 65536;

// So many AxB parts, each from 1 on.
std::optional<std::vector<int>> read_extents(std::string_view text, std::size_t least, std::size_t most) {
    const auto values = parse_extents(text);
    if (!values || values->size() < least || values->size() > most) return std::nullopt;
    std::vector<int> extents;
    for (const std::int64_t value : *values) {
        if (value < 1 || value > kLargestExtent) return std::nullopt;
        extents.push_back(static_cast<int>(value));
    }
    return extents;
}

std::optional<WarpRecipe> read_warp(std::string_view text) {
    if (text.ends_with("x*")) {
        const auto rows = parse_integer(text.substr(0, text.size() - 2));
        return rows && *rows > 0 && *rows <= kLargestExtent ? std::optional(WarpRecipe{static_cast<int>(*rows), 0, 0})
                                                            : std::nullopt;
    }
    const auto extents = read_extents(text, 2, 3);
    if (!extents) return std::nullopt;
    const auto at = [&](std::size_t i) { return i < extents->size() ? (*extents)[i] : 0; };
    return WarpRecipe{at(0), at(1), at(2)};
}

std::optional<PipelineRecipe> read_pipeline(std::string_view text) {
    PipelineRecipe recipe;
    const auto parts = split(text, ':');
    const auto pipeline = parse_enum<Pipeline>(parts[0]);
    if (!pipeline || parts.size() > 2) return std::nullopt;
    recipe.pipeline = *pipeline;
    if (parts.size() == 2) {
        const auto scheduler = parse_enum<Scheduler>(parts[1]);
        if (!scheduler) return std::nullopt;
        recipe.scheduler = *scheduler;
    }
    return recipe;
}

std::optional<bool> read_buffers(std::string_view text) {
    if (text == "single") return false;
    return text == "double" ? std::optional(true) : std::nullopt;
}

std::optional<int> read_number(std::string_view text, int last) {
    const auto number = parse_integer(text);
    return number && *number >= 1 && *number <= last ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<int> read_dimension(std::string_view text) { return read_number(text, 3); }

std::optional<int> read_stages(std::string_view text) {
    constexpr int kMostStages = 64;
    return text == "fit" ? kStagesThatFit : read_number(text, kMostStages);
}

// The sets that are samples of others have no blocks.
std::optional<RuleSet> read_set(std::string_view text) {
    const auto set = parse_enum<RuleSet>(text);
    return set && *set != RuleSet::full_tests && *set != RuleSet::tiny ? std::optional(*set) : std::nullopt;
}

template <class E>
std::optional<E> read_word(std::string_view text) {
    const auto value = parse_enum<E>(text);
    return value ? std::optional(*value) : std::nullopt;
}

std::optional<DTypePair> read_pair(std::string_view text) {
    const auto pair = parse_pair(text);
    return pair ? std::optional(*pair) : std::nullopt;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (const std::string_view word : split(text, ' ')) {
        if (!word.empty()) words.emplace_back(word);
    }
    return words;
}

// Reads what an object says about a block; lists that it does not mention stay as they are.
class BlockReader {
public:
    BlockReader(const Json& json, const std::string& file, const std::string& path) : from_(json, file, path) {}

    Result<Block> read_block(Block block, bool whole) {
        if (!from_.ok()) return from_.finish().error();
        list<RuleSet>("sets", read_set, block.sets);
        list<Op>("ops", read_word<Op>, block.ops);
        list<TileRecipe>("tiles", read_tile, block.tiles);
        list<Shape3>("waves", read_shape, block.waves);
        list<WarpRecipe>("warps", read_warp, block.warps);
        list<PipelineRecipe>("pipelines", read_pipeline, block.pipelines);
        list<bool>("buffers", read_buffers, block.buffers);
        list<int>("stages", read_stages, block.stages);
        list<Epilogue>("epilogues", read_word<Epilogue>, block.epilogues);
        list<Layout>("layouts", read_word<Layout>, block.layouts);
        list<int>("dims", read_dimension, block.dims);
        list<VecStrategy>("vectors", read_word<VecStrategy>, block.vectors);
        list<DTypePair>("dtypes", read_pair, block.dtypes);
        read_channels(block);
        read_fields(block);
        read_feature("needs", block.needs);
        read_feature("first_with", block.first_with);
        block.order = static_cast<int>(from_.integer_or("order", 0, kLastOrder, block.order));
        if (whole) require(block);
        if (auto status = from_.finish(); !status) return status.error();
        return block;
    }

    template <class T>
    void list(std::string_view key, std::optional<T> (*read)(std::string_view), std::vector<T>& out) {
        const Json* value = from_.child_or_null(key);
        if (!value) return;
        out.clear();
        const std::string text = text_of(*value);
        if (text == "*") return;
        for (const std::string& word : words_of(text)) {
            const auto item = read(word);
            if (!item) {
                from_.fail(key, fmt::format("cannot read '{}'", word));
                return;
            }
            out.push_back(*item);
        }
        if (out.empty()) from_.fail(key, "needs at least one word");
    }

    JsonObject& from() { return from_; }

private:
    static constexpr std::int64_t kLastOrder = 10000;

    // A list is a string of words, or an array of such strings.
    static std::string text_of(const Json& value) {
        if (!value.array()) return value.string() ? *value.string() : "?";
        std::string text;
        for (const Json& line : *value.array()) text += line.string() ? *line.string() + " " : "? ";
        return text;
    }

    void read_channels(Block& block) {
        if (!from_.has("channels")) return;
        const auto channels = read_extents(from_.text("channels"), 2, 2);
        if (!channels) {
            from_.fail("channels", "needs channels per group of input x output, such as 4x8");
        } else {
            block.channels = {(*channels)[0], (*channels)[1]};
        }
    }

    void read_feature(std::string_view key, std::optional<ArchFeature>& out) {
        if (!from_.has(key)) return;
        const auto feature = parse_enum<ArchFeature>(from_.text(key));
        if (!feature) return from_.fail(key, feature.error().message);
        out = *feature;
    }

    // A field that the defaults have too takes the block's values.
    void read_fields(Block& block) {
        const Json* json = from_.child_or_null("fields");
        if (!json) return;
        if (!json->object()) {
            from_.fail("fields", "needs an object of config fields");
            return;
        }
        for (const auto& [key, value] : *json->object()) {
            const ConfigField* field = find_field(key);
            const auto values = value.string() ? words_of(*value.string()) : std::vector{value.dump()};
            KernelConfig probe;
            const auto fits = [&](const std::string& text) { return field && field->parse(probe, text).ok(); };
            if (values.empty() || !std::all_of(values.begin(), values.end(), fits)) {
                from_.fail("fields", fmt::format("'{}' is no config field, or {} no value of it", key, value.dump()));
                return;
            }
            const auto known = std::find_if(block.fields.begin(), block.fields.end(),
                                            [&](const auto& entry) { return entry.first == field; });
            if (known == block.fields.end()) {
                block.fields.emplace_back(field, values);
            } else {
                known->second = values;
            }
        }
    }

    void require(const Block& block) {
        const std::pair<std::string_view, bool> lists[] = {
            {"sets", block.sets.empty()},       {"ops", block.ops.empty()},   {"tiles", block.tiles.empty()},
            {"stages", block.stages.empty()},   {"dims", block.dims.empty()}, {"layouts", block.layouts.empty()},
            {"vectors", block.vectors.empty()},
        };
        for (const auto& [key, empty] : lists) {
            if (empty) from_.fail(key, "needs at least one, here or in the defaults");
        }
    }

    JsonObject from_;
};

Status read_wave_map(const Json& json, const std::string& file, Recipe& recipe) {
    BlockReader reader(json, file, "waves");
    JsonObject& table = reader.from();
    if (!table.ok()) return table.finish();
    for (const auto& member : *json.object()) {
        std::string_view tile = member.first;
        const bool any_width = tile.ends_with("x*");
        if (any_width) tile.remove_suffix(2);
        const auto extents = any_width ? read_extents(tile, 1, 1) : read_extents(tile, 2, 2);
        if (!extents) {
            table.fail(member.first, "needs a tile m x n such as 128x64, or 128x* for every n");
            break;
        }
        std::vector<Shape3> waves;
        reader.list<Shape3>(member.first, read_shape, waves);
        if (waves.empty()) table.fail(member.first, "needs at least one arrangement of waves");
        recipe.waves.push_back({{extents->front(), any_width ? kAnyWidth : extents->back()}, waves});
    }
    return table.finish();
}

// Every tile has waves: the block's own, or those of the map.
Status check_waves(const Json& json, const std::string& file, const std::string& path, const Block& block,
                   const Recipe& recipe) {
    if (!block.waves.empty()) return {};
    for (const TileRecipe& tile : block.tiles) {
        if (recipe.find_waves(tile)) continue;
        return usage_error(fmt::format("{}:{}: {}.waves: the file's waves have none for a tile of {}x{}", file,
                                       json.line(), path, tile.shape.m, tile.shape.n));
    }
    return {};
}

Status read_blocks(const Json& json, const std::string& file, const Block& defaults, Recipe& recipe) {
    for (const Json& item : *json.array()) {
        const std::string path = fmt::format("blocks[{}]", recipe.blocks.size());
        auto block = BlockReader(item, file, path).read_block(defaults, true);
        if (!block) return block.error();
        if (auto status = check_waves(item, file, path, *block, recipe); !status) return status;
        recipe.blocks.push_back(std::move(*block));
    }
    return {};
}

using Recipes = std::vector<Result<std::vector<Recipe>>>;

Result<std::vector<Recipe>> read_embedded(Backend backend) {
    std::vector<Recipe> recipes;
    const std::string folder = fmt::format("recipes/{}/", name_of(backend));
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with(folder)) continue;
        auto recipe = parse_recipe(file.text, std::string(file.path));
        if (!recipe) return recipe.error();
        recipes.push_back(std::move(*recipe));
    }
    return recipes;
}

}  // namespace

bool has_feature(const ArchSpec& arch, ArchFeature feature) {
    switch (feature) {
        case ArchFeature::wgmma: return arch.wide_wave_rows > 0;
    }
    return false;
}

const std::vector<Shape3>* Recipe::find_waves(const TileRecipe& tile) const {
    for (const int width : {tile.shape.n, kAnyWidth}) {
        for (const auto& [extents, arrangements] : waves) {
            if (extents == std::pair{tile.shape.m, width}) return &arrangements;
        }
    }
    return nullptr;
}

Result<Recipe> parse_recipe(std::string_view text, const std::string& file) {
    auto json = Json::parse(text);
    if (!json) return usage_error(fmt::format("{}: {}", file, json.error().message));
    JsonObject from(*json, file);
    if (!from.ok()) return from.finish().error();
    Recipe recipe;
    const std::size_t start = file.find_last_of('/') + 1;  // 0 where there is none
    recipe.name = file.substr(start, file.find_last_of('.') - start);
    from.text("description");
    recipe.round_tiles = from.flag_or("round_tiles", false);
    if (const Json* waves = from.child_or_null("waves")) {
        if (auto status = read_wave_map(*waves, file, recipe); !status) return status.error();
    }
    Block defaults;
    if (const Json* given = from.child_or_null("defaults")) {
        auto block = BlockReader(*given, file, "defaults").read_block(defaults, false);
        if (!block) return block.error();
        defaults = std::move(*block);
    }
    const Json* blocks = from.child("blocks");
    if (blocks && (!blocks->array() || blocks->array()->empty())) from.fail("blocks", "needs an array of blocks");
    if (auto status = from.finish(); !status) return status.error();
    if (auto status = read_blocks(*blocks, file, defaults, recipe); !status) return status.error();
    return recipe;
}

Result<std::span<const Recipe>> recipes_of(Backend backend) {
    static const Recipes recipes = [] {
        Recipes all;
        for (const Backend each : kAllBackends) all.push_back(read_embedded(each));
        return all;
    }();
    const auto& found = recipes[static_cast<std::size_t>(backend)];
    if (!found) return found.error();
    return std::span<const Recipe>(*found);
}

}  // namespace tilewise
