// SPDX-License-Identifier: MIT
#include "codegen/kernel_source.hpp"

#include <fmt/core.h>

#include "codegen/cuda_source.hpp"
#include "codegen/source_text.hpp"
#include "config/config_name.hpp"

namespace tilewise {
namespace {

std::string cpu_gemm_source(const KernelConfig& c) {
    std::string text =
        fmt::format("// {}\n#include \"cpu/gemm.hpp\"\n\nnamespace {{\nstruct Config {{\n", code_name(c));
    for (const auto& [name, dtype] : {std::pair{"A", c.dtype}, {"B", c.dtype_b}, {"Out", c.dtype_out}}) {
        text += fmt::format("    using {} = tilewise::cpu::{};\n", name, element_type(dtype));
    }
    text += shape_lines("tile", c.tile) + shape_lines("wave", c.wave) + shape_lines("warp", c.warp_tile);
    text += fmt::format("    static constexpr auto pipeline = tilewise::cpu::Pipeline::{};\n", name_of(c.pipeline));
    text += fmt::format("    static constexpr bool swap_ab = {};\n", c.swap_ab);
    return text + "};\n}  // namespace\n\nTILEWISE_CPU_GEMM(Config)\n";
}

}  // namespace

bool has_template(const KernelConfig& c) {
    if (c.arch.starts_with("cpu-")) return c.op == Op::gemm;
    return c.arch.starts_with("sm_") && has_cuda_template(c);
}

Result<KernelSource> generate_source(const KernelConfig& c, const ArchSpec& arch) {
    if (!has_template(c) || c.arch != arch.name) {
        return unsupported_error(
            fmt::format("there is no kernel template yet for {} on {}", kernel_name(c), arch.name));
    }
    if (arch.backend == "cuda") return KernelSource{cuda_source(c, arch), {}};
    return KernelSource{cpu_gemm_source(c), kernel_features(c, arch)};
}

std::vector<std::string> kernel_features(const KernelConfig& c, const ArchSpec& arch) {
    std::vector<std::string> features = arch.cpu_features;
    for (const DepthFeature& need : arch.depth_features) {
        if (need.dtype == c.dtype && need.depth == c.warp_tile.k) features.push_back(need.feature);
    }
    return features;
}

}  // namespace tilewise
