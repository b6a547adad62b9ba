// SPDX-License-Identifier: MIT
// Named ways to choose the vector widths of A, B and C. A strategy says how wide each access is relative to the
// widest the arch has; the types, the direction and the channels per group turn that into elements.
#pragma once

#include <cstdint>

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

enum class VecStrategy : std::uint8_t {
    generic,
    uniform_max,
    max_ab_half_c,
    max_a_min_bc,
    min_a_max_bc,
    half_uniform,
    half_ab_max_c,
    max_ab_quarter_c,
    max_a_quarter_bc,
    min_ab_max_c,
    max_a_half_bc,
    max_ab_min_c,
    min_ab_quarter_c,
    min_a_max_b_half_c,
    half_a_max_bc,
    half_a_min_bc,
    quarter_uniform,
    quarter_ab_max_c,
    quarter_a_max_bc,
    max_b_min_ac,
    max_a_half_b_min_c,
    max_a_quarter_b_min_c,
};
template <>
struct EnumNames<VecStrategy> {
    static constexpr std::string_view kind = "vector strategy";
    static constexpr std::array<std::string_view, 22> names = {"generic",
                                                               "uniform_max",
                                                               "max_ab_half_c",
                                                               "max_a_min_bc",
                                                               "min_a_max_bc",
                                                               "half_uniform",
                                                               "half_ab_max_c",
                                                               "max_ab_quarter_c",
                                                               "max_a_quarter_bc",
                                                               "min_ab_max_c",
                                                               "max_a_half_bc",
                                                               "max_ab_min_c",
                                                               "min_ab_quarter_c",
                                                               "min_a_max_b_half_c",
                                                               "half_a_max_bc",
                                                               "half_a_min_bc",
                                                               "quarter_uniform",
                                                               "quarter_ab_max_c",
                                                               "quarter_a_max_bc",
                                                               "max_b_min_ac",
                                                               "max_a_half_b_min_c",
                                                               "max_a_quarter_b_min_c"};
};

// Channels per group that a convolution kernel is meant for; 0 means many, whatever the width.
struct GroupChannels {
    int c = 0;
    int k = 0;
};

// Sets vector_a, vector_b and vector_c.
void apply_vectors(KernelConfig& config, const ArchSpec& arch, VecStrategy strategy, GroupChannels channels);

}  // namespace tilewise
