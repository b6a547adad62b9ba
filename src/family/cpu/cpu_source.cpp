// SPDX-License-Identifier: MIT
#include "family/cpu/cpu_source.hpp"

#include <fmt/core.h>

#include <cctype>

#include "family/source_text.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Kernels walk over all dimensions that there are, so one binary serves 1-D, 2-D and 3-D: its text names one of them.
std::string any_dimensions_name(KernelConfig c) {
    c.ndim = c.default_ndim();
    return code_name(c);
}

}  // namespace

std::string cpu_pipeline_line(const KernelConfig& c) {
    return fmt::format("    static constexpr auto pipeline = tilewise::cpu::Pipeline::{};\n", name_of(c.pipeline));
}

std::string cpu_conv_lines(const KernelConfig& c) {
    const std::string_view direction = c.op == Op::conv_fwd        ? "forward"
                                       : c.op == Op::conv_bwd_data ? "backward_data"
                                                                   : "backward_weight";
    return fmt::format("    static constexpr auto direction = tilewise::Direction::{};\n", direction) +
           fmt::format("    static constexpr bool two_stage = {}, split_image = {}, explicit_gemm = {};\n", c.two_stage,
                       c.split_image, c.explicit_gemm);
}

std::string cpu_source(std::string_view family, const KernelConfig& c, std::string_view lines) {
    std::string macro(family);
    for (char& letter : macro) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    std::string text = fmt::format("// {}\n#include \"cpu/{}/{}.hpp\"\n\nnamespace {{\nstruct Config {{\n",
                                   any_dimensions_name(c), family, family);
    for (const auto& [name, dtype] : {std::pair{"A", c.dtype}, {"B", c.dtype_b}, {"Out", c.dtype_out}}) {
        text += fmt::format("    using {} = tilewise::cpu::{};\n", name, element_type(dtype));
    }
    text += shape_lines("tile", c.tile) + shape_lines("wave", c.wave) + shape_lines("warp", c.warp_tile);
    return fmt::format("{}{}}};\n}}  // namespace\n\nTILEWISE_CPU_{}(Config)\n", text, lines, macro);
}

}  // namespace tilewise
