// SPDX-License-Identifier: MIT
#include "config/vec_strategy.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "base/text.hpp"
#include "config/archs.hpp"
#include "config/geometry.hpp"

namespace tilewise {
namespace {

// A strategy's name promises this for an operand: the divisor of the widest access, 0 for one element.
// "max_ab_half_c": A and B at the widest, C at half of it.
int divisor_in_name(std::string_view name, char operand) {
    if (name == "generic") return 0;
    if (name == "uniform_max") return 1;
    if (name == "half_uniform") return 2;
    if (name == "quarter_uniform") return 4;
    const auto words = split(name, '_');
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
        if (words[i + 1].find(operand) == std::string_view::npos) continue;
        return words[i] == "max" ? 1 : words[i] == "half" ? 2 : words[i] == "quarter" ? 4 : 0;
    }
    ADD_FAILURE() << name << " does not say what " << operand << " is";
    return 0;
}

class VecStrategies : public EachArch {};

TEST_P(VecStrategies, DoWhatTheirNamesSay) {
    for (std::size_t s = 0; s < EnumNames<VecStrategy>::names.size(); ++s) {
        const auto strategy = static_cast<VecStrategy>(s);
        for (const WarpTiles& entry : arch().warp_tiles) {
            for (const Op op : kAllOps) {
                KernelConfig c;
                c.op = op;
                c.dtype = entry.dtypes.a;
                c.dtype_b = entry.dtypes.b;
                c.dtype_out = c.default_dtype_out();
                apply_vectors(c, arch(), strategy, {});
                for (int i = 0; i < 3; ++i) {
                    const auto widest = static_cast<int>(arch().load_bytes / bytes_of(operand_dtype(c, i)));
                    const int divisor = divisor_in_name(name_of(strategy), "abc"[i]);
                    EXPECT_EQ(vector_width(c, i), divisor == 0 ? 1 : std::max(1, widest / divisor))
                        << name_of(strategy) << " operand " << i;
                }
            }
        }
    }
}

// Never wider than the channels of the groups that lie side by side, and always a power of two that divides them.
TEST_P(VecStrategies, StayWithinTheChannelsOfAGroup) {
    for (const Op op : {Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight}) {
        for (const int channels_c : {1, 2, 3, 4, 6, 8, 12, 64}) {
            for (const int channels_k : {1, 4, 5, 16}) {
                for (const int merge : {1, 2, 8}) {
                    KernelConfig c;
                    c.op = op;
                    c.dtype = c.dtype_b = c.dtype_out = DType::bf16;
                    c.num_groups_to_merge = merge;
                    apply_vectors(c, arch(), VecStrategy::uniform_max, {channels_c, channels_k});
                    // Operand by operand, whose channels it carries: x and w those of the input, y those of the output.
                    const bool carries_k[] = {op != Op::conv_fwd, false, op == Op::conv_fwd};
                    for (int i = 0; i < 3; ++i) {
                        // Merged groups lie side by side in activations; a row of weights has one group's channels.
                        const bool weights = i == (op == Op::conv_bwd_weight ? 2 : 1);
                        const int limit = weights ? channels_c : (carries_k[i] ? channels_k : channels_c) * merge;
                        const int width = vector_width(c, i);
                        EXPECT_TRUE(std::has_single_bit(static_cast<unsigned>(width)));
                        EXPECT_EQ(limit % width, 0) << name_of(op) << " operand " << i << " width " << width;
                        EXPECT_LE(width * 2, arch().load_bytes);
                        const bool could_double = width * 4 <= arch().load_bytes && limit % (2 * width) == 0;
                        EXPECT_FALSE(could_double) << name_of(op) << " operand " << i << " width " << width;
                    }
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Archs, VecStrategies, testing::ValuesIn(arch_names()), test_name);

}  // namespace
}  // namespace tilewise
