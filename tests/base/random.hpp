// SPDX-License-Identifier: MIT
// A small seeded source of choices for the property tests: the same seed gives the same test on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "base/sanitized.hpp"

namespace tilewise {

// So many random cases of a test; under a sanitizer, where each takes about ten times as long, a tenth of them: it looks for
// what the code does with memory and numbers, and the release build goes through all of them.
inline int draws(int count) { return is_sanitized() ? count / 10 : count; }

class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    std::uint64_t bits() { return engine_(); }
    std::int64_t between(std::int64_t low, std::int64_t high) {  // both included
        const auto span = static_cast<std::uint64_t>(high - low) + 1;
        return low + static_cast<std::int64_t>(span == 0 ? bits() : bits() % span);
    }
    bool chance(int percent) { return between(1, 100) <= percent; }
    template <class List>
    const auto& pick(const List& list) {
        return list[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(list.size()) - 1))];
    }

private:
    std::mt19937_64 engine_;
};

}  // namespace tilewise
