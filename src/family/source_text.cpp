// SPDX-License-Identifier: MIT
#include "family/source_text.hpp"

#include <fmt/core.h>

#include "config/config_name.hpp"

namespace tilewise {

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

std::string code_name(const KernelConfig& c) {
    KernelConfig code = c;
    for (const ConfigField& field : config_fields()) {
        if (field.mark == Mark::launch) field.reset(code);
    }
    return kernel_name(code);
}

}  // namespace tilewise
