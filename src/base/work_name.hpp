// SPDX-License-Identifier: MIT
// The name of a part of the work: a literal, and which of the parts that most families have it says. This is known when it is compiled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enum_names.hpp"

namespace tilewise {

enum class WorkPart : std::uint8_t { compute, memory, loads, cache, sums, packing, ends, rounds };
template <>
struct EnumNames<WorkPart> {
    static constexpr std::string_view kind = "part of the work";
    static constexpr auto names =
        std::to_array<std::string_view>({"compute", "memory", "loads", "cache", "sums", "packing", "ends", "rounds"});
};
inline constexpr std::size_t kWorkPartCount = EnumNames<WorkPart>::names.size();

namespace work_parts {

template <class... Words>
constexpr bool is_one_of(std::string_view name, Words... words) {
    return ((name == std::string_view(words)) || ...);
}

// What families call the parts; kWorkPartCount where it is none of them.
constexpr std::size_t place_of(std::string_view name) {
    const auto place = [](WorkPart part) { return static_cast<std::size_t>(part); };
    if (is_one_of(name, "compute", "product", "products", "busy", "operations", "steps of a unit")) {
        return place(WorkPart::compute);
    }
    if (name == "memory") return place(WorkPart::memory);
    if (is_one_of(name, "load from cache", "load from memory", "loads", "copies", "fetches", "copies of a warp",
                  "reads", "waiting", "waits")) {
        return place(WorkPart::loads);
    }
    if (is_one_of(name, "cache", "shared memory", "reread", "reread rows", "reread vectors")) {
        return place(WorkPart::cache);
    }
    if (is_one_of(name, "sums", "shared sums", "sum bytes", "sums in workspace", "sums that meet", "cluster's sums")) {
        return place(WorkPart::sums);
    }
    if (is_one_of(name, "packing", "columns", "weights", "narrow weights", "packed", "packed a", "copied b",
                  "turned b")) {
        return place(WorkPart::packing);
    }
    if (is_one_of(name, "epilogue", "chain", "ending", "ends", "stores", "results", "between", "between blocks")) {
        return place(WorkPart::ends);
    }
    return is_one_of(name, "rounds", "walks", "passes", "tasks") ? place(WorkPart::rounds) : kWorkPartCount;
}

}  // namespace work_parts

struct WorkName {
    std::string_view text;
    std::size_t part;

    consteval WorkName(const char* literal)
        : text(literal), part(work_parts::place_of(text)) {}  // NOLINT: a literal is a name
};

}  // namespace tilewise
