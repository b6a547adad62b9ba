// SPDX-License-Identifier: MIT
// Reads an arch file. Every key is known and checked, so that a mistyped limit is an error with a line number and
// not a limit that silently does not hold.
#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "base/json_object.hpp"
#include "base/text.hpp"
#include "config/arch_spec.hpp"
#include "config/rules.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kMaxCount = 1 << 20;
constexpr std::int64_t kMaxWaveSize = 1024;
constexpr std::int64_t kMostDirectCopyBytes = 16;  // the widest access of a lane
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

Shape3 read_shape(JsonObject& from, std::string_view key, std::string_view text) {
    auto shape = parse_shape(text);
    if (!shape || shape->m < 1 || shape->n < 1 || shape->k < 1) {
        from.fail(key, fmt::format("'{}' is not three extents of 1 or more, such as 32x32x16", text));
        return {1, 1, 1};
    }
    return *shape;
}

std::vector<Shape3> read_shapes(JsonObject& from, std::string_view key) {
    std::vector<Shape3> shapes;
    for (const std::string& text : from.texts(key)) shapes.push_back(read_shape(from, key, text));
    if (shapes.empty()) from.fail(key, "needs at least one shape");
    return shapes;
}

// An array of operations, or the word "all".
std::array<bool, 4> read_ops(JsonObject& from, std::string_view key) {
    std::array<bool, 4> ops{};
    const Json* value = from.child(key);
    if (value && value->string() && *value->string() == "all") return {true, true, true, true};
    for (const std::string& word : from.texts(key)) {
        auto op = parse_enum<Op>(word);
        if (!op) {
            from.fail(key, op.error().message);
            break;
        }
        ops[static_cast<std::size_t>(*op)] = true;
    }
    return ops;
}

Result<PipelineSpec> read_pipeline(const Json& json, const std::string& file, const std::string& path) {
    JsonObject from(json, file, path);
    PipelineSpec spec;
    spec.supported = true;
    for (const std::string& word : from.texts("schedulers")) {
        auto scheduler = parse_enum<Scheduler>(word);
        if (!scheduler) {
            from.fail("schedulers", scheduler.error().message);
            break;
        }
        spec.schedulers[static_cast<std::size_t>(*scheduler)] = true;
    }
    spec.ops = from.has("ops") ? read_ops(from, "ops") : std::array<bool, 4>{true, true, true, true};
    auto buffering = parse_enum<Buffering>(from.text("buffers"));
    if (!buffering) {
        from.fail("buffers", buffering.error().message);
    } else {
        spec.buffering = *buffering;
    }
    constexpr int kMaxStages = 64;
    spec.min_stages = static_cast<int>(from.integer_or("min_stages", 1, kMaxStages, 1));
    spec.max_stages = static_cast<int>(from.integer_or("max_stages", spec.min_stages, kMaxStages, spec.min_stages));
    spec.producers = from.flag_or("producers", false);
    if (auto status = from.finish(); !status) return status.error();
    return spec;
}

Status read_pipelines(JsonObject& from, ArchSpec& arch) {
    const Json* json = from.child("pipelines");
    if (!json || !json->object()) {
        from.fail("pipelines", "needs an object");
        return {};
    }
    for (const auto& [name, value] : *json->object()) {
        auto pipeline = parse_enum<Pipeline>(name);
        if (!pipeline) {
            return usage_error(
                fmt::format("{}:{}: pipelines: {}", from.file(), value.line(), pipeline.error().message));
        }
        auto spec = read_pipeline(value, from.file(), "pipelines." + name);
        if (!spec) return spec.error();
        arch.pipelines[static_cast<std::size_t>(*pipeline)] = *spec;
    }
    return {};
}

Status read_warp_tiles(JsonObject& from, ArchSpec& arch) {
    const Json* json = from.child("warp_tiles");
    if (!json) return {};
    JsonObject table(*json, from.file(), "warp_tiles");
    if (!table.ok()) return table.finish();
    for (const auto& member : *json->object()) {
        const auto pair = parse_pair(member.first);
        if (!pair) {
            table.fail(member.first, pair.error().message);
            break;
        }
        const bool possible =
            pair->a != DType::int32 && (pair->a == pair->b || (is_8bit_float(pair->a) && is_8bit_float(pair->b)));
        if (!possible) table.fail(member.first, "needs the same input type twice, or a mix of fp8 and bf8");
        if (arch.find_warp_tiles(*pair)) table.fail(member.first, "is a pair that was given before");
        arch.warp_tiles.push_back({*pair, read_shapes(table, member.first)});
    }
    return table.finish();
}

// {"bf16": {"2": "avx512_bf16"}}: warp tiles of bf16 that are 2 deep use that feature.
Status read_depth_features(JsonObject& from, ArchSpec& arch) {
    const Json* json = from.child_or_null("depth_features");
    if (!json) return {};
    JsonObject table(*json, from.file(), "depth_features");
    for (std::size_t i = 0; i < EnumNames<DType>::names.size() && table.ok(); ++i) {
        const std::string dtype(EnumNames<DType>::names[i]);
        const Json* depths = table.child_or_null(dtype);
        if (!depths) continue;
        JsonObject entry(*depths, from.file(), "depth_features." + dtype);
        if (!entry.ok()) return entry.finish();
        for (const auto& member : *depths->object()) {
            const auto depth = parse_integer(member.first);
            if (!depth || *depth < 1 || *depth > kMaxCount)
                entry.fail(member.first, "needs a depth of 1 or more as its key");
            arch.depth_features.push_back(
                {static_cast<DType>(i), static_cast<int>(depth.value_or(1)), entry.text(member.first)});
        }
        if (auto status = entry.finish(); !status) return status;
    }
    return table.finish();
}

Status read_limits(JsonObject& from, ArchSpec& arch) {
    const Json* json = from.child("operators");
    if (!json) return {};
    JsonObject table(*json, from.file(), "operators");
    for (std::size_t i = 0; i < kOperatorCount && table.ok(); ++i) {
        const std::string name(EnumNames<Operator>::names[i]);
        const Json* entry = table.child(name);
        if (!entry) break;
        JsonObject limits(*entry, from.file(), "operators." + name);
        arch.limits[i].min = read_shape(limits, "min", limits.text("min"));
        arch.limits[i].align = read_shape(limits, "align", limits.text("align"));
        if (auto status = limits.finish(); !status) return status;
    }
    return table.finish();
}

Status read_options(JsonObject& from, ArchSpec& arch) {
    arch.options.assign(config_fields().size(), {});
    const Json* json = from.child("options");
    if (!json) return {};
    JsonObject table(*json, from.file(), "options");
    for (std::size_t i = 0; i < config_fields().size() && table.ok(); ++i) {
        const ConfigField& field = config_fields()[i];
        if (field.role == Role::option && table.has(field.name)) arch.options[i] = read_ops(table, field.name);
    }
    return table.finish();
}

// The name of an embedded chip, or a chip's own object.
Result<Chip> read_own_chip(JsonObject& from, const ArchSpec& arch) {
    const Json* json = from.child("chip");
    if (!json) return from.finish().error();
    const bool is_name = json->string() != nullptr;
    auto chip = is_name ? find_chip(*json->string()) : read_chip(*json, from.file(), "chip");
    if (!chip && !is_name) return chip;
    if (!chip) {
        from.fail("chip", chip.error().message);
        return from.finish().error();
    }
    if (chip->backend == arch.backend) return chip;
    from.fail("chip",
              fmt::format("{} is for {}, not for {}", chip->name, name_of(chip->backend), name_of(arch.backend)));
    return from.finish().error();
}

void read_sizes(JsonObject& from, ArchSpec& arch) {
    arch.wave_size = static_cast<int>(from.integer("wave_size", 1, kMaxWaveSize));
    arch.wide_wave_rows = static_cast<int>(from.integer_or("wide_wave_rows", 1, kMaxCount, 0));
    arch.wide_wave_size = static_cast<int>(from.integer_or("wide_wave_size", 1, kMaxWaveSize, 0));
    if ((arch.wide_wave_rows == 0) != (arch.wide_wave_size == 0)) {
        from.fail("wide_wave_rows", "and wide_wave_size come together");
    }
    arch.max_threads = static_cast<int>(from.integer("max_threads", 1, kMaxCount));
    arch.registers = static_cast<int>(from.integer_or("registers", 1, kMaxCount, 0));
    arch.accumulators_per_thread = static_cast<int>(from.integer_or("accumulators_per_thread", 1, kMaxCount, 0));
    arch.shared_bytes = from.integer("shared_bytes", 1, kMaxBytes);
    arch.load_bytes = static_cast<int>(from.integer("load_bytes", 1, 1024));
    if (!std::has_single_bit(static_cast<unsigned>(arch.load_bytes))) from.fail("load_bytes", "needs a power of two");
    arch.max_cluster = static_cast<int>(from.integer_or("max_cluster", 1, kMaxCount, 1));
    arch.dies = static_cast<int>(from.integer_or("dies", 1, kMaxCount, 1));
    arch.direct_copy_bytes = static_cast<int>(from.integer_or("direct_copy_bytes", 4, kMostDirectCopyBytes, 0));
    arch.small_float_products = from.flag_or("small_float_products", false);
    arch.turned_reads = from.flag_or("turned_reads", false);
    arch.flushes_subnormals = from.flag_or("flushes_subnormals", false);
    arch.fp8_sum_bits = static_cast<int>(from.integer_or("fp8_sum_bits", 1, kFloatBits, kFloatBits));
}

}  // namespace

Result<ArchSpec> parse_arch(std::string_view text, const std::string& file) {
    auto json = Json::parse(text);
    if (!json) return usage_error(fmt::format("{}: {}", file, json.error().message));
    JsonObject from(*json, file);
    if (!from.ok()) return from.finish().error();

    ArchSpec arch;
    arch.name = from.text("name");
    KernelConfig probe;  // the name must be one that a config can carry
    if (auto status = find_field("arch")->parse(probe, arch.name); !status) from.fail("name", status.error().message);
    arch.family = from.text("family");
    const auto backend = parse_enum<Backend>(from.text("backend"));
    if (backend) arch.backend = *backend;
    if (from.ok() && !backend) from.fail("backend", backend.error().message);
    arch.description = from.text("description");
    if (from.child_or_null("rules"))
        from.fail("rules", "is no key any more: remove it; the recipes of the backend apply");
    arch.provisional = from.flag_or("provisional", false);
    arch.cpu_features = from.texts_or_none("cpu_features");
    read_sizes(from, arch);
    arch.waves = read_shapes(from, "waves");
    for (const std::string& word : from.texts("epilogues")) {
        auto epilogue = parse_enum<Epilogue>(word);
        if (!epilogue) {
            from.fail("epilogues", epilogue.error().message);
            break;
        }
        arch.epilogues[static_cast<std::size_t>(*epilogue)] = true;
    }
    if (from.has("depthwise_tiles")) arch.depthwise_tiles = read_shapes(from, "depthwise_tiles");
    if (from.has("depthwise_bf16_tiles")) arch.depthwise_bf16_tiles = read_shapes(from, "depthwise_bf16_tiles");
    arch.known_bad = from.texts_or_none("known_bad");
    for (const std::string& name : arch.known_bad) {
        const ConfigRule* rule = find_config_rule(name);
        if (!rule || !rule->known_bad)
            from.fail("known_bad", fmt::format("'{}' is no rule for a known-bad combination", name));
    }
    for (const auto read : {read_warp_tiles, read_depth_features, read_pipelines, read_limits, read_options}) {
        if (!from.ok()) break;
        if (auto status = read(from, arch); !status) return status.error();
    }
    if (!from.ok()) return from.finish().error();
    const auto chip = read_own_chip(from, arch);
    if (!chip) return chip.error();
    if (auto status = from.finish(); !status) return status.error();
    arch.json = *json;
    set_chip(arch, *chip);
    return arch;
}

}  // namespace tilewise
