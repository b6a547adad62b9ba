// SPDX-License-Identifier: MIT
#include "config/rule_book.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

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

std::optional<int> read_count(std::string_view text) {
    const auto number = parse_integer(text);
    return number && *number >= 0 && *number <= 64 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<int> read_stages(std::string_view text) { return text == "fit" ? kStagesThatFit : read_count(text); }

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

// A block with the section's defaults behind it. A list is a string of words, or an array of such strings.
class BlockReader {
public:
    BlockReader(JsonObject& block, const Json* defaults) : block_(block), defaults_(defaults) {}

    template <class T>
    void list(std::string_view key, std::optional<T> (*read)(std::string_view), std::vector<T>& out) {
        for (const std::string& word : words(key)) {
            const auto value = read(word);
            if (!value) {
                block_.fail(key, fmt::format("cannot read '{}'", word));
                return;
            }
            out.push_back(*value);
        }
    }

private:
    std::vector<std::string> words(std::string_view key) {
        const Json* value = block_.child_or_null(key);
        if (!value && defaults_) value = defaults_->find(key);
        if (!value) return {};
        std::string text;
        if (const auto* lines = value->array()) {
            for (const Json& line : *lines) text += line.string() ? *line.string() + " " : " ? ";
        } else {
            text = value->string() ? *value->string() : "?";
        }
        return text == "*" ? std::vector<std::string>{} : words_of(text);
    }

    JsonObject& block_;
    const Json* defaults_;
};

bool is_list_key(std::string_view key) {
    constexpr std::array<std::string_view, 9> kKeys = {"ops",       "waves",   "warps", "pipelines", "buffers",
                                                       "epilogues", "layouts", "dims",  "vectors"};
    return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

void read_set(JsonObject& from, Block& block) {
    const Json* json = from.child_or_null("set");
    if (!json) return;
    if (!json->object()) {
        from.fail("set", "needs an object of config fields");
        return;
    }
    for (const auto& [key, value] : *json->object()) {
        const ConfigField* field = find_field(key);
        const auto values = value.string() ? words_of(*value.string()) : std::vector{value.dump()};
        for (const std::string& text : values) {
            KernelConfig probe;
            if (field && field->parse(probe, text)) continue;
            from.fail("set", fmt::format("'{}' is no config field, or {} no value of it", key, text));
            return;
        }
        block.set.emplace_back(field, values);
    }
}

Result<Block> read_block(const Json& json, const Json* defaults, const std::string& file, const std::string& path) {
    JsonObject from(json, file, path);
    if (!from.ok()) return from.finish().error();
    BlockReader reader(from, defaults);
    Block block;
    reader.list<Op>("ops", read_word<Op>, block.ops);
    reader.list<TileRecipe>("tiles", read_tile, block.tiles);
    reader.list<Shape3>("waves", read_shape, block.waves);
    reader.list<WarpRecipe>("warps", read_warp, block.warps);
    reader.list<PipelineRecipe>("pipelines", read_pipeline, block.pipelines);
    reader.list<bool>("buffers", read_buffers, block.buffers);
    reader.list<int>("stages", read_stages, block.stages);
    reader.list<Epilogue>("epilogues", read_word<Epilogue>, block.epilogues);
    reader.list<Layout>("layouts", read_word<Layout>, block.layouts);
    reader.list<int>("dims", read_count, block.dims);
    reader.list<VecStrategy>("vectors", read_word<VecStrategy>, block.vectors);
    reader.list<DTypePair>("dtypes", read_pair, block.dtypes);
    if (from.has("channels")) {
        const auto channels = read_extents(from.text("channels"), 2, 2);
        if (!channels) {
            from.fail("channels", "needs channels per group of input x output, such as 4x8");
        } else {
            block.channels = {(*channels)[0], (*channels)[1]};
        }
    }
    read_set(from, block);
    if (block.tiles.empty()) from.fail("tiles", "needs at least one tile");
    if (block.layouts.empty()) block.layouts = {Layout::any};
    if (block.dims.empty()) block.dims = {2};
    if (block.vectors.empty()) block.vectors = {VecStrategy::generic};
    if (block.stages.empty()) block.stages = {kStagesThatFit};
    if (auto status = from.finish(); !status) return status.error();
    return block;
}

Status read_wave_map(JsonObject& from, Recipes& recipes) {
    const Json* json = from.child("waves");
    if (!json) return {};
    JsonObject table(*json, from.file(), from.path_of("waves"));
    if (!table.ok()) return table.finish();
    BlockReader reader(table, nullptr);
    for (const auto& member : *json->object()) {
        std::vector<Shape3> waves;
        reader.list<Shape3>(member.first, read_shape, waves);
        if (waves.empty()) table.fail(member.first, "needs at least one wave arrangement");
        if (member.first == "other") {
            recipes.other_waves = waves;
            continue;
        }
        const auto extents = read_extents(member.first, 2, 2);
        if (!extents) {
            table.fail(member.first, "needs a tile m x n such as 128x64, or other");
            break;
        }
        recipes.waves.push_back({{(*extents)[0], (*extents)[1]}, waves});
    }
    if (recipes.other_waves.empty()) table.fail("other", "is missing");
    return table.finish();
}

Result<std::vector<Block>> read_blocks(JsonObject& from, const Json& blocks, const Json* defaults,
                                       const std::string& file, const std::string& path, const std::string& name) {
    std::vector<Block> read;
    if (!blocks.array() || blocks.array()->empty()) {
        from.fail(name, "needs an array of blocks");
        return read;
    }
    for (std::size_t i = 0; i < blocks.array()->size(); ++i) {
        auto block = read_block((*blocks.array())[i], defaults, file, fmt::format("{}.{}[{}]", path, name, i));
        if (!block) return block.error();
        read.push_back(std::move(*block));
    }
    return read;
}

Result<Recipes> read_recipes(const Json& json, const std::string& file, const std::string& path) {
    JsonObject from(json, file, path);
    if (!from.ok()) return from.finish().error();
    Recipes recipes;
    if (auto status = read_wave_map(from, recipes); !status) return status.error();
    const Json* defaults = from.child("defaults");
    for (const auto& [key, value] : defaults && defaults->object() ? *defaults->object() : Json::Object{}) {
        if (!is_list_key(key) || !value.string()) {
            return usage_error(
                fmt::format("{}:{}: {}.defaults: '{}' is no list of a block", file, value.line(), path, key));
        }
    }
    for (std::size_t set = 0; set < recipes.blocks.size(); ++set) {
        const std::string name(EnumNames<RuleSet>::names[set]);
        const Json* listed = from.child(name);
        auto blocks = read_blocks(from, listed ? *listed : Json(), defaults, file, path, name);
        if (!blocks) return blocks.error();
        recipes.blocks[set] = std::move(*blocks);
    }
    const std::string builtin(name_of(RuleSet::builtin));
    if (const Json* listed = from.child_or_null(builtin)) {
        auto blocks = read_blocks(from, *listed, defaults, file, path, builtin);
        if (!blocks) return blocks.error();
        recipes.builtin = std::move(*blocks);
    }
    recipes.full_tests_every = static_cast<int>(from.integer("full_tests_every", 1, 1000));
    recipes.tiny_least = static_cast<int>(from.integer("tiny_least", 1, 1000));
    if (auto status = from.finish(); !status) return status.error();
    return recipes;
}

using Books = std::map<std::string, Result<RuleBook>, std::less<>>;

Books read_embedded() {
    Books books;
    for (const EmbeddedFile& file : embedded_files()) {
        if (!file.path.starts_with("rules/")) continue;
        const std::string stem(file.path.substr(6, file.path.rfind('.') - 6));
        books.emplace(stem, parse_rule_book(file.text, std::string(file.path)));
    }
    return books;
}

}  // namespace

Result<RuleBook> parse_rule_book(std::string_view text, const std::string& file) {
    auto json = Json::parse(text);
    if (!json) return usage_error(fmt::format("{}: {}", file, json.error().message));
    JsonObject from(*json, file);
    if (!from.ok()) return from.finish().error();
    RuleBook book;
    book.name = from.text("name");
    from.text("description");
    book.also = from.text_or("also", "");
    book.round_tiles = from.flag_or("round_tiles", false);
    for (const auto& [name, target] : {std::pair{"gemm", &book.gemm}, {"conv", &book.conv}}) {
        const Json* section = from.child(name);
        if (!section) break;
        auto recipes = read_recipes(*section, file, name);
        if (!recipes) return recipes.error();
        *target = std::move(*recipes);
    }
    if (auto status = from.finish(); !status) return status.error();
    return book;
}

Result<const RuleBook*> find_rule_book(std::string_view name) {
    static const Books books = read_embedded();
    const auto found = books.find(name);
    if (found == books.end()) {
        std::vector<std::string_view> names;
        for (const auto& [known, book] : books) names.push_back(known);
        return usage_error(unknown_word("rule book", name, names));
    }
    if (!found->second) return found->second.error();
    return &*found->second;
}

}  // namespace tilewise
