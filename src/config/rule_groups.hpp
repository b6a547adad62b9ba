// SPDX-License-Identifier: MIT
// The groups that make up config_rules(), each in a file of its own, and what they share.
#pragma once

#include <fmt/core.h>

#include <span>
#include <utility>

#include "config/rules.hpp"

namespace tilewise {

std::span<const ConfigRule> identity_rules();   // operation, types, layout
std::span<const ConfigRule> pipeline_rules();   // pipeline, scheduler, buffers, stages, epilogue
std::span<const ConfigRule> shape_rules();      // tile, wave, warp tile, threads, registers
std::span<const ConfigRule> memory_rules();     // shared memory, vectors
std::span<const ConfigRule> option_rules();     // options and their conflicts
std::span<const ConfigRule> known_bad_rules();  // combinations that an arch file names as wrong

inline constexpr char kOperandName[] = {'a', 'b', 'c'};

// Fills in the numbers of a refusal when they were asked for; always true, so that a test can return it.
template <class Have, class Need>
bool refuse(Rejected* out, Have&& have, Need&& need) {
    if (out) {
        out->have = std::forward<Have>(have)();
        out->need = std::forward<Need>(need)();
    }
    return true;
}
#define TILEWISE_TEXT(...) [&] { return fmt::format(__VA_ARGS__); }

}  // namespace tilewise
