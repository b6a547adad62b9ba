// SPDX-License-Identifier: MIT
#include "family/launch_plan.hpp"

#include <span>

#include "problem/types.hpp"

namespace tilewise {
namespace {

template <class T, std::size_t N>
Json numbers(const std::array<T, N>& values) {
    Json::Array list;
    for (const T value : values) list.emplace_back(value);
    return Json(std::move(list));
}

Json shape(const Shape2& s) { return numbers(std::array{s.m, s.n}); }

Json part_to_json(const KernelPart& p) {
    return numbers(
        std::array<std::int64_t, 7>{p.m_begin, p.m_end, p.n_begin, p.n_end, p.batch_begin, p.batch_end, p.k_part});
}

void set_parts(Json& json, const char* key, std::span<const KernelPart> parts) {
    if (parts.empty()) return;
    Json::Array list;
    for (const KernelPart& part : parts) list.push_back(part_to_json(part));
    json.set(key, Json(std::move(list)));
}

Json box_to_json(const TensorBox& box) { return numbers(std::array{box.rows, box.columns}); }

Json block_to_json(const LaunchSpec& block) {
    Json json = Json::object({{"threads", block.threads},
                              {"shared_bytes", block.shared_bytes},
                              {"cluster", shape(block.cluster)},
                              {"persistent", block.persistent}});
    if (block.compute_registers > 0) {
        json.set("copy_registers", block.copy_registers);
        json.set("compute_registers", block.compute_registers);
    }
    return json;
}

Json map_to_json(const TensorMapSpec& map) {
    Json json = Json::object({{"dtype", name_of(map.dtype)},
                              {"size", numbers(map.size)},
                              {"stride_bytes", numbers(map.stride_bytes)},
                              {"box", box_to_json(map.box)}});
    if (map.im2col) {
        json.set("im2col", Json::object({{"dims", map.im2col->dims},
                                         {"size", numbers(map.im2col->size)},
                                         {"lower", numbers(map.im2col->lower)},
                                         {"upper", numbers(map.im2col->upper)},
                                         {"step", numbers(map.im2col->step)}}));
    }
    if (map.pixels) {
        json.set("pixels", Json::object({{"size", numbers(map.pixels->size)},
                                         {"box", numbers(map.pixels->box)},
                                         {"step", map.pixels->step},
                                         {"images", map.pixels->images}}));
    }
    if (map.workspace_offset) json.set("workspace_offset", *map.workspace_offset);
    if (map.operand) json.set("operand", *map.operand);
    return json;
}

// Trailing zeros are what the family does not use.
Json arguments_to_json(std::span<const int> words) {
    while (!words.empty() && words.back() == 0) words = words.first(words.size() - 1);
    Json::Array list;
    for (const int word : words) list.emplace_back(word);
    return Json(std::move(list));
}

void set_count(Json& json, const char* key, std::int64_t count) {
    if (count != 0) json.set(key, count);
}

void set_cpu(Json& json, const CpuParts& parts) {
    json.set("threads", parts.threads);
    set_parts(json, "expand_parts", parts.expand);
    set_parts(json, "parts", parts.run);
    set_parts(json, "reduce_parts", parts.reduce);
}

void set_gpu(Json& json, const GpuGrid& grid) {
    json.set("blocks", grid.blocks);
    json.set("block", block_to_json(grid.block));
    json.set("raster_group", grid.raster_group);
    set_count(json, "split_k", grid.split_k);
    set_count(json, "reduce_blocks", grid.reduce_blocks);
    set_count(json, "reduce_threads", grid.reduce_threads);
    set_count(json, "pack_blocks", grid.pack_blocks);
    set_count(json, "pack_threads", grid.pack_threads);
    set_count(json, "pack_b_blocks", grid.pack_b_blocks);
    set_count(json, "pack_b_threads", grid.pack_b_threads);
    set_count(json, "pack_b_shared_bytes", grid.pack_b_shared_bytes);
    set_count(json, "packed_b_bytes", grid.packed_b_bytes);
    if (grid.patch != std::array<int, 4>{}) json.set("patch", numbers(grid.patch));
    if (grid.product) json.set("product", numbers(std::array{grid.product->m, grid.product->n, grid.product->k}));
    if (grid.family_args != FamilyArgs{}) json.set("arguments", arguments_to_json(grid.family_args.words));
    if (!grid.tensor_maps) return;
    Json::Array maps;
    for (const TensorMapSpec& map : *grid.tensor_maps) maps.push_back(map_to_json(map));
    json.set("tensor_maps", Json(std::move(maps)));
}

}  // namespace

Json launch_to_json(const LaunchPlan& launch) {
    Json json = Json::object({});
    if (const CpuParts* parts = launch.cpu()) set_cpu(json, *parts);
    if (const GpuGrid* grid = launch.gpu()) set_gpu(json, *grid);
    json.set("workspace_bytes", launch.workspace_bytes);
    return json;
}

}  // namespace tilewise
