// SPDX-License-Identifier: MIT
// Rules about what a kernel computes: operation, dimensions, layout, element types, numeric class.
#include "config/rule_groups.hpp"

namespace tilewise {
namespace {

bool wrong_arch(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return c.arch != arch.name && refuse(out, TILEWISE_TEXT("arch {}", c.arch), TILEWISE_TEXT("{}", arch.name));
}

bool wrong_dimensions(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool right = is_conv(c.op) ? c.ndim >= 1 && c.ndim <= kMaxSpatialDims : c.ndim == 0;
    return !right && refuse(out, TILEWISE_TEXT("{} with ndim {}", name_of(c.op), c.ndim),
                            TILEWISE_TEXT("{}", is_conv(c.op) ? "1 to 3" : "0"));
}

bool wrong_layout(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (c.layout == Layout::any) return false;
    const bool right =
        is_conv(c.op) ? is_conv_layout(c.layout) && spatial_dims(c.layout) == c.ndim : is_gemm_layout(c.layout);
    return !right && refuse(out, TILEWISE_TEXT("{} in {}", name_of(c.layout), name_of(c.op)),
                            TILEWISE_TEXT("{}", is_conv(c.op) ? "a layout of that many dimensions, or any"
                                                              : "three letters of r and c, or any"));
}

bool out_of_scope(const KernelConfig& c, const ConfigField& field) {
    return (field.scope == Scope::conv && !is_conv(c.op)) || (field.scope == Scope::gemm && is_conv(c.op));
}

bool wrong_scope(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    bool wrong = false;
    for (const ConfigField& field : config_fields()) wrong = wrong || (out_of_scope(c, field) && !field.is_default(c));
    if (!wrong) return false;
    return refuse(
        out,
        [&] {
            std::string text;
            for (const ConfigField& field : config_fields()) {
                if (!out_of_scope(c, field) || field.is_default(c)) continue;
                text += fmt::format("{}{}", text.empty() ? "" : ", ", field.name);
            }
            return fmt::format("{} in {}", text, name_of(c.op));
        },
        TILEWISE_TEXT("the default: it is for {} only", is_conv(c.op) ? "gemm" : "convolution"));
}

void correct_scope(KernelConfig& c, const ArchSpec&) {
    for (const ConfigField& field : config_fields()) {
        if (out_of_scope(c, field)) field.reset(c);
    }
}

bool wrong_pair(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return !arch.find_warp_tiles({c.dtype, c.dtype_b}) &&
           refuse(out, TILEWISE_TEXT("{} x {}", name_of(c.dtype), name_of(c.dtype_b)),
                  TILEWISE_TEXT("a pair of input types that {} has warp tiles for", arch.name));
}

bool wrong_output(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !is_output_of(c.dtype, c.dtype_out) &&
           refuse(out, TILEWISE_TEXT("{} output of {}", name_of(c.dtype_out), name_of(c.dtype)),
                  TILEWISE_TEXT("{}", outputs_of(c.dtype)));
}

void correct_output(KernelConfig& c, const ArchSpec&) { c.dtype_out = default_output(c.dtype); }

bool wrong_accumulator(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.dtype_acc != default_accumulator(c.dtype) &&
           refuse(out, TILEWISE_TEXT("{} accumulators", name_of(c.dtype_acc)),
                  TILEWISE_TEXT("{}", name_of(default_accumulator(c.dtype))));
}

void correct_accumulator(KernelConfig& c, const ArchSpec&) { c.dtype_acc = default_accumulator(c.dtype); }

bool int8_backward(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.dtype == DType::int8 && (c.op == Op::conv_bwd_data || c.op == Op::conv_bwd_weight) &&
           refuse(out, TILEWISE_TEXT("{} in int8", name_of(c.op)), TILEWISE_TEXT("conv_fwd, or a float type"));
}

bool wrong_math(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool right =
        c.math == Math::strict || (c.math == Math::fast ? is_8bit_float(c.dtype) : c.dtype == DType::fp32);
    return !right && refuse(out, TILEWISE_TEXT("{} with {}", name_of(c.math), name_of(c.dtype)),
                            TILEWISE_TEXT("strict; fast is for fp8 and bf8, tf32 and tf32x3 are for fp32"));
}

void correct_math(KernelConfig& c, const ArchSpec&) { c.math = Math::strict; }

constexpr ConfigRule kIdentityRules[] = {
    {"arch", "a kernel is checked against the arch it is for", wrong_arch},
    {"dimensions", "a convolution has one to three spatial dimensions, a GEMM none", wrong_dimensions},
    {"layout", "the layout is one of the operation's, of the same dimensions", wrong_layout},
    {"field_scope", "convolution options mean nothing in a GEMM", wrong_scope, correct_scope},
    {"dtype_pair", "the arch has matrix instructions or micro-kernels for the pair of input types", wrong_pair},
    {"dtype_output", "floats stay floats, and int8 products become int32, int8 or a wide float", wrong_output,
     correct_output},
    {"dtype_accumulator", "sums are kept in fp32, those of int8 in int32", wrong_accumulator, correct_accumulator},
    {"int8_forward_only", "gradients are not computed in integers", int8_backward},
    {"math_dtype", "a numeric class belongs to the types it loosens", wrong_math, correct_math},
};

}  // namespace

std::span<const ConfigRule> identity_rules() { return kIdentityRules; }

}  // namespace tilewise
