// SPDX-License-Identifier: MIT
#include "config/vec_strategy.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "config/geometry.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// The divisor of the widest access for A, B and C; 0 means one element.
constexpr std::array<std::array<int, 3>, EnumNames<VecStrategy>::names.size()> kDivisors = {{
    {0, 0, 0}, {1, 1, 1}, {1, 1, 2}, {1, 0, 0}, {0, 1, 1}, {2, 2, 2}, {2, 2, 1}, {1, 1, 4},
    {1, 4, 4}, {0, 0, 1}, {1, 2, 2}, {1, 1, 0}, {0, 0, 4}, {0, 1, 2}, {2, 1, 1}, {2, 0, 0},
    {4, 4, 4}, {4, 4, 1}, {4, 1, 1}, {0, 1, 0}, {1, 2, 0}, {1, 4, 0},
}};

// How many channels lie side by side for an operand; 0 when there is no limit. Those of merged groups do in activations;
// a row of weights has one group's.
int channels_of(const KernelConfig& c, int operand, GroupChannels channels) {
    if (c.specialization == Specialization::depthwise) return is_weight(c.op, operand) ? 1 : 0;
    if (is_weight(c.op, operand)) return channels.c;
    const int groups = c.num_groups_to_merge;
    channels = {channels.c * groups, channels.k * groups};
    switch (c.op) {
        case Op::gemm: return 0;
        case Op::conv_fwd: return operand == 2 ? channels.k : channels.c;
        case Op::conv_bwd_data:
        case Op::conv_bwd_weight: return operand == 0 ? channels.k : channels.c;
    }
    return 0;
}

}  // namespace

void apply_vectors(KernelConfig& c, const ArchSpec& arch, VecStrategy strategy, GroupChannels channels) {
    for (int i = 0; i < 3; ++i) {
        const int divisor = kDivisors[static_cast<std::size_t>(strategy)][static_cast<std::size_t>(i)];
        const int widest = static_cast<int>(arch.load_bytes / bytes_of(operand_dtype(c, i)));
        int width = divisor == 0 ? 1 : std::max(1, widest / divisor);
        const int limit = channels_of(c, i, channels);
        if (limit > 0) width = std::gcd(width, limit);
        set_vector_width(c, i, static_cast<int>(std::bit_floor(static_cast<unsigned>(width))));
    }
}

}  // namespace tilewise
