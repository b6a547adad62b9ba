// SPDX-License-Identifier: MIT
// The words a problem is written in: operations, element types, layouts, fused operations and numeric classes.
// Problems and kernel configs share them; each enum has its one table of names here.
#pragma once

#include <cstdint>

#include "base/enum_names.hpp"

namespace tilewise {

enum class Op : std::uint8_t { gemm, conv_fwd, conv_bwd_data, conv_bwd_weight };
template <>
struct EnumNames<Op> {
    static constexpr std::string_view kind = "operation";
    static constexpr std::array<std::string_view, 4> names = {"gemm", "conv_fwd", "conv_bwd_data", "conv_bwd_weight"};
};
constexpr bool is_conv(Op op) { return op == Op::conv_fwd || op == Op::conv_bwd_data || op == Op::conv_bwd_weight; }
inline constexpr std::array<Op, 4> kAllOps = {Op::gemm, Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight};

// fp8 is e4m3, bf8 is e5m2. int32 is only ever an output or an accumulator.
enum class DType : std::uint8_t { fp32, fp16, bf16, fp8, bf8, int8, int32 };
template <>
struct EnumNames<DType> {
    static constexpr std::string_view kind = "dtype";
    static constexpr std::array<std::string_view, 7> names = {"fp32", "fp16", "bf16", "fp8", "bf8", "int8", "int32"};
};
constexpr std::int64_t bytes_of(DType t) {
    switch (t) {
        case DType::fp32:
        case DType::int32: return 4;
        case DType::fp16:
        case DType::bf16: return 2;
        case DType::fp8:
        case DType::bf8:
        case DType::int8: return 1;
    }
    return 0;
}
constexpr bool is_8bit_float(DType t) { return t == DType::fp8 || t == DType::bf8; }
constexpr DType default_accumulator(DType input) { return input == DType::int8 ? DType::int32 : DType::fp32; }
constexpr DType default_output(DType input) {
    if (is_8bit_float(input)) return DType::fp16;
    return input == DType::int8 ? DType::int32 : input;
}
// Floats convert to any float; int8 products to int32, back to int8 (saturating) or to a wide float.
constexpr bool is_output_of(DType input, DType output) {
    if (input == DType::int8) return !is_8bit_float(output);
    return output != DType::int8 && output != DType::int32;
}
constexpr std::string_view outputs_of(DType input) {
    return input == DType::int8 ? "int32, int8, fp32, fp16 or bf16" : "fp32, fp16, bf16, fp8 or bf8";
}

// GEMM: one letter each for A, B, C; `r` is stored as written (A MxK, B KxN, C MxN), `c` is stored transposed.
// Convolution: the layout of x; w is GKYXC and y follows x. `any` is for kernels only: they take all of the kind.
enum class Layout : std::uint8_t {
    any,
    rcr,
    rrr,
    crr,
    ccr,
    rcc,
    rrc,
    crc,
    ccc,
    nwgc,
    nhwgc,
    ndhwgc,
    ngcw,
    ngchw,
    ngcdhw,
};
template <>
struct EnumNames<Layout> {
    static constexpr std::string_view kind = "layout";
    static constexpr std::array<std::string_view, 15> names = {"any",   "rcr",    "rrr",  "crr",   "ccr",
                                                               "rcc",   "rrc",    "crc",  "ccc",   "nwgc",
                                                               "nhwgc", "ndhwgc", "ngcw", "ngchw", "ngcdhw"};
};
constexpr bool is_gemm_layout(Layout l) { return l >= Layout::rcr && l <= Layout::ccc; }
constexpr bool is_conv_layout(Layout l) { return l >= Layout::nwgc; }
constexpr bool is_channels_last(Layout l) { return l >= Layout::nwgc && l <= Layout::ndhwgc; }
// Whether operand 0 (A), 1 (B) or 2 (C) of a GEMM layout is stored as written.
constexpr bool is_row(Layout l, int operand) { return name_of(l)[static_cast<std::size_t>(operand)] == 'r'; }
// The number of spatial dimensions of a convolution layout.
constexpr int spatial_dims(Layout l) {
    return is_channels_last(l) ? static_cast<int>(l) - static_cast<int>(Layout::nwgc) + 1
                               : static_cast<int>(l) - static_cast<int>(Layout::ngcw) + 1;
}
constexpr Layout channels_last(int dims) { return static_cast<Layout>(static_cast<int>(Layout::nwgc) + dims - 1); }

// A chain of these is applied to the result before it is stored, in the order written. add and mul combine
// the result with the next D tensor, which has the output's shape, layout and dtype.
enum class EpilogueOp : std::uint8_t { bias, relu, relu6, gelu, gelu_tanh, silu, sigmoid, tanh, hardswish, add, mul };
template <>
struct EnumNames<EpilogueOp> {
    static constexpr std::string_view kind = "epilogue operation";
    static constexpr std::array<std::string_view, 11> names = {
        "bias", "relu", "relu6", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "hardswish", "add", "mul"};
};
constexpr bool reads_d(EpilogueOp op) { return op == EpilogueOp::add || op == EpilogueOp::mul; }

// Scale factors of the inputs: none, one per tensor, or one per row of A and column of B (GEMM only).
enum class Scale : std::uint8_t { none, tensor, row };
template <>
struct EnumNames<Scale> {
    static constexpr std::string_view kind = "scale";
    static constexpr std::array<std::string_view, 3> names = {"none", "tensor", "row"};
};

// strict: true fp32 products, promoted 8-bit accumulation. The others must be asked for.
enum class Math : std::uint8_t { strict, fast, tf32, tf32x3 };
template <>
struct EnumNames<Math> {
    static constexpr std::string_view kind = "math class";
    static constexpr std::array<std::string_view, 4> names = {"strict", "fast", "tf32", "tf32x3"};
};

}  // namespace tilewise
