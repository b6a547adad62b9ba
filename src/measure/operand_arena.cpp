// SPDX-License-Identifier: MIT
#include "measure/operand_arena.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "measure/device_memory.hpp"
#include "measure/random_fill.hpp"
#include "measure/tensors.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kArenaAlignment = 256;
// A prime, so that neighbouring rows differ whatever their length; few enough to draw in milliseconds.
constexpr std::int64_t kPatternElements = 65521;
constexpr std::uint64_t kPatternSeed = 1;

Result<std::vector<std::byte>> make_pattern(DType type, Range range) {
    const StoredRows row{1, 1, kPatternElements, kPatternElements, kPatternElements};
    const auto buffer = GuardedBuffer::make("pattern", type, row, kArenaAlignment);
    if (!buffer) return buffer.error();
    fill_random(*buffer, range, kPatternSeed);
    return std::vector<std::byte>(buffer->data(), buffer->data() + buffer->bytes());
}

// The operands of one set, in the order of the pieces.
Operands placed(const Problem& p, const std::vector<void*>& at) {
    Operands o;
    std::size_t next = 0;
    o.a = at[next++];
    o.b = at[next++];
    o.c = at[next++];
    if (has_bias(p)) o.bias = at[next++];
    if (p.scale != Scale::none) {
        o.scale_a = static_cast<const float*>(at[next++]);
        o.scale_b = static_cast<const float*>(at[next++]);
    }
    for (std::size_t i = 0; i < d_count(p); ++i) o.d[i] = at[next++];
    return o;
}

}  // namespace

std::vector<OperandArena::Piece> OperandArena::pieces_of(const Problem& p) {
    std::vector<Piece> pieces;
    const auto add = [&](DType type, Use use, std::int64_t elements) {
        const std::int64_t bytes = std::max<std::int64_t>(elements * bytes_of(type), 1);
        pieces.push_back({{type, use}, round_up(bytes, kArenaAlignment)});
    };
    add(p.dtype_a, Use::input, stored_rows(p, 0).span());
    add(p.dtype_b, Use::input, stored_rows(p, 1).span());
    add(p.dtype_out, Use::output, stored_rows(p, 2).span());
    if (has_bias(p)) add(p.dtype_out, Use::input, bias_length(p));
    if (p.scale != Scale::none) {
        add(DType::fp32, Use::scale, p.scale == Scale::row ? p.gemm.m : 1);
        add(DType::fp32, Use::scale, p.scale == Scale::row ? p.gemm.n : 1);
    }
    for (std::size_t i = 0; i < d_count(p); ++i) add(p.dtype_out, Use::input, stored_rows(p, 2).span());
    return pieces;
}

// The first stretch comes from the host, the rest from what is there already: whole patterns, so that they go on.
Status OperandArena::fill(const Key& key, const Region& region) {
    auto& pattern = patterns_[key];
    if (pattern.empty()) {
        auto made = make_pattern(key.first, key.second == Use::scale ? kScaleRange : operand_range(key.first));
        if (!made) return made.error();
        pattern = std::move(*made);
    }
    auto* begin = static_cast<std::byte*>(region.memory.get());
    std::int64_t done = std::min(region.bytes, static_cast<std::int64_t>(pattern.size()));
    auto status = device_.copy(begin, pattern.data(), static_cast<std::size_t>(done), kDefaultStream);
    while (status && done < region.bytes) {
        const std::int64_t next = std::min(done, region.bytes - done);
        status = device_.copy(begin + done, begin, static_cast<std::size_t>(next), kDefaultStream);
        done += next;
    }
    return status;
}

Result<std::byte*> OperandArena::region(const Key& key, std::int64_t bytes) {
    Region& found = regions_[key];
    if (found.bytes < bytes) {
        found = Region();  // gives back what there is before more is asked for
        auto memory = device_memory(device_, bytes);
        if (!memory) return memory.error();
        Region made{std::move(*memory), bytes};
        if (auto status = fill(key, made); !status) return status.error();
        found = std::move(made);  // only when it is full: the next problem takes what it finds
    }
    return static_cast<std::byte*>(found.memory.get());
}

Result<std::vector<Operands>> OperandArena::sets(const Problem& problem, const ArenaLimits& limits) {
    const std::vector<Piece> pieces = pieces_of(problem);
    std::int64_t each = 0;
    for (const Piece& piece : pieces) each += piece.bytes;
    // The set in use is in the cache, so the others alone must exceed it.
    const std::int64_t wanted = 2 + limits.cache_bytes / each;
    const std::int64_t allowed = std::max<std::int64_t>(1, limits.max_bytes / each);
    const std::int64_t count = std::min({wanted, allowed, std::int64_t{limits.most_sets}});
    std::map<Key, std::int64_t> needed;
    for (const Piece& piece : pieces) needed[piece.key] += count * piece.bytes;
    std::map<Key, std::byte*> next;
    for (const auto& [key, bytes] : needed) {
        auto begin = region(key, bytes);
        if (!begin) return begin.error();
        next[key] = *begin;
    }
    std::vector<Operands> sets;
    for (std::int64_t i = 0; i < count; ++i) {
        std::vector<void*> at;
        for (const Piece& piece : pieces) {
            at.push_back(next[piece.key]);
            next[piece.key] += piece.bytes;
        }
        sets.push_back(placed(problem, at));
    }
    return sets;
}

Result<void*> OperandArena::workspace(std::int64_t bytes) {
    if (workspace_.bytes < bytes) {
        workspace_ = Region();
        auto memory = device_memory(device_, bytes);
        if (!memory) return memory.error();
        workspace_ = {std::move(*memory), bytes};
    }
    return workspace_.memory.get();
}

}  // namespace tilewise
