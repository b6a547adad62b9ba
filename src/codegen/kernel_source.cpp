// SPDX-License-Identifier: MIT
#include "codegen/kernel_source.hpp"

#include <fmt/core.h>

#include "config/config_name.hpp"

namespace tilewise {
namespace {

std::string_view element_type(DType dtype) {
    switch (dtype) {
        case DType::fp32: return "Fp32";
        case DType::fp16: return "Fp16";
        case DType::bf16: return "Bf16";
        case DType::fp8: return "Fp8";
        case DType::bf8: return "Bf8";
        case DType::int8: return "Int8";
        case DType::int32: return "Int32";
    }
    return "Fp32";
}

std::string shape_lines(std::string_view name, const Shape3& s) {
    return fmt::format("    static constexpr int {0}_m = {1}, {0}_n = {2}, {0}_k = {3};\n", name, s.m, s.n, s.k);
}

std::string cpu_gemm_source(const KernelConfig& c) {
    KernelConfig code = c;
    for (const ConfigField& field : config_fields()) {
        if (field.mark == Mark::launch) field.reset(code);
    }
    std::string text =
        fmt::format("// {}\n#include \"cpu/gemm.hpp\"\n\nnamespace {{\nstruct Config {{\n", kernel_name(code));
    for (const auto& [name, dtype] : {std::pair{"A", c.dtype}, {"B", c.dtype_b}, {"Out", c.dtype_out}}) {
        text += fmt::format("    using {} = tilewise::cpu::{};\n", name, element_type(dtype));
    }
    text += shape_lines("tile", c.tile) + shape_lines("wave", c.wave) + shape_lines("warp", c.warp_tile);
    text += fmt::format("    static constexpr auto pipeline = tilewise::cpu::Pipeline::{};\n", name_of(c.pipeline));
    text += fmt::format("    static constexpr bool swap_ab = {};\n", c.swap_ab);
    return text + "};\n}  // namespace\n\nTILEWISE_CPU_GEMM(Config)\n";
}

}  // namespace

bool has_template(const KernelConfig& c) { return c.op == Op::gemm && c.arch.starts_with("cpu-"); }

Result<KernelSource> generate_source(const KernelConfig& c, const ArchSpec& arch) {
    if (!has_template(c) || arch.backend != "cpu") {
        return unsupported_error(fmt::format("there is no kernel template yet for {} on {}", name_of(c.op), arch.name));
    }
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
