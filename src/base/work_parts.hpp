// SPDX-License-Identifier: MIT
// A third kind of number for work (base/work.hpp): a double that leaves behind what the parts of a time are that most families have, by
// the names that they give them. It takes hardly longer than the time alone, and allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/enum_names.hpp"
#include "base/work.hpp"

namespace tilewise {

enum class WorkPart : std::uint8_t { compute, memory, loads, cache, sums, packing, ends, rounds };
template <>
struct EnumNames<WorkPart> {
    static constexpr std::string_view kind = "part of the work";
    static constexpr auto names =
        std::to_array<std::string_view>({"compute", "memory", "loads", "cache", "sums", "packing", "ends", "rounds"});
};
inline constexpr std::size_t kWorkPartCount = EnumNames<WorkPart>::names.size();
// The largest number of each part, in whatever unit its family counts it; 0 where a family names none.
using WorkParts = std::array<double, kWorkPartCount>;

namespace work_parts {

template <class... Words>
[[gnu::always_inline]] inline constexpr bool is_one_of(std::string_view name, Words... words) {
    return ((name == std::string_view(words)) || ...);
}

// The place of a name among the parts, or that after the last. Names are literals: nothing of this is left when it is compiled.
[[gnu::always_inline]] inline constexpr std::size_t place_of(std::string_view name) {
    WorkPart part;
    if (is_one_of(name, "compute", "product", "products", "busy", "operations", "steps of a unit")) {
        part = WorkPart::compute;
    } else if (is_one_of(name, "memory")) {
        part = WorkPart::memory;
    } else if (is_one_of(name, "load from cache", "load from memory", "loads", "copies", "fetches", "copies of a warp",
                         "reads", "waiting", "waits")) {
        part = WorkPart::loads;
    } else if (is_one_of(name, "cache", "shared memory", "reread", "reread rows", "reread vectors")) {
        part = WorkPart::cache;
    } else if (is_one_of(name, "sums", "shared sums", "sum bytes", "sums in workspace", "sums that meet",
                         "cluster's sums")) {
        part = WorkPart::sums;
    } else if (is_one_of(name, "packing", "columns", "weights", "narrow weights", "packed", "packed a", "copied b",
                         "turned b")) {
        part = WorkPart::packing;
    } else if (is_one_of(name, "epilogue", "chain", "ending", "ends", "stores", "results", "between",
                         "between blocks")) {
        part = WorkPart::ends;
    } else if (is_one_of(name, "rounds", "walks", "passes", "tasks")) {
        part = WorkPart::rounds;
    } else {
        return kWorkPartCount;
    }
    return static_cast<std::size_t>(part);
}

extern thread_local WorkParts* noted_parts;  // of this thread, never null while a Part is made

[[gnu::always_inline]] inline void note(std::string_view name, double value) {
    const std::size_t place = place_of(name);
    if (place < kWorkPartCount) (*noted_parts)[place] = std::max((*noted_parts)[place], value);
}

}  // namespace work_parts

struct Part {
    double value;

    Part(double number) : value(number) {}  // NOLINT: a number among parts is a count
    explicit Part(const Price& price) : value(price.value) {}

    [[gnu::always_inline]] static Part of_count(std::string_view name, double count) {
        work_parts::note(name, count);
        return {count};
    }
    static Part of_price(const double& price) { return {price}; }
};

// Where the parts of this thread go while this lives.
class NotedParts {
public:
    explicit NotedParts(WorkParts& into) {
        into.fill(0);
        work_parts::noted_parts = &into;
    }
    ~NotedParts() { work_parts::noted_parts = nullptr; }
    NotedParts(const NotedParts&) = delete;
    NotedParts& operator=(const NotedParts&) = delete;
};

inline Part operator+(Part a, Part b) { return {a.value + b.value}; }
inline Part operator-(Part a, Part b) { return {a.value - b.value}; }
inline Part operator*(Part a, Part b) { return {a.value * b.value}; }
inline Part operator/(Part a, Part b) { return {a.value / b.value}; }

[[gnu::always_inline]] inline Part named(std::string_view name, Part part) {
    work_parts::note(name, part.value);
    return part;
}

inline Part longest(std::initializer_list<Part> times) {
    double most = times.begin()->value;
    for (const Part& time : times) most = std::max(most, time.value);
    return {most};
}
inline Part shortest(std::initializer_list<Part> times) {
    double least = times.begin()->value;
    for (const Part& time : times) least = std::min(least, time.value);
    return {least};
}
inline Part power(Part base, Part exponent) { return {std::pow(base.value, exponent.value)}; }
Part soft_max(Part exponent, std::initializer_list<Part> times);
Part overlap(Part share, std::initializer_list<Part> times);

}  // namespace tilewise
