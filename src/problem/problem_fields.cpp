// SPDX-License-Identifier: MIT
// The table of problem fields: each names its key, which operations have it, and how it is read and printed.
// Order matters: it is the order of the printed text, and fields that give others their default come first.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "problem/dtype_words.hpp"
#include "problem/operand_specs.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

// Whether a whole number in the text does not fit 64 bits.
bool overflows(std::string_view text) {
    while (!text.empty()) {
        const auto start = text.find_first_of("0123456789");
        if (start == std::string_view::npos) return false;
        text.remove_prefix(start);
        const auto length = std::min(text.find_first_not_of("0123456789"), text.size());
        if (!parse_integer(text.substr(0, length))) return true;
        text.remove_prefix(length);
    }
    return false;
}

Status needs(std::string_view what, std::string_view have) {
    if (overflows(have)) {
        return usage_error(fmt::format("'{}' is too large; a number is at most {}", have.substr(0, 64), kMaxElements));
    }
    return usage_error(fmt::format("'{}' is not {}", have.substr(0, 64), what));
}

// ---- whole numbers -------------------------------------------------------------------------------------------

template <auto access>
Status parse_number(Problem& p, std::string_view text) {
    const auto value = parse_integer(text);
    if (!value) return needs("a whole number", text);
    access(p) = *value;
    return {};
}

template <auto access>
std::string print_number(const Problem& p) {
    return fmt::format("{}", access(const_cast<Problem&>(p)));
}

// A stride: the packed one is what a missing field means, so it cannot be written as a number.
template <auto access>
Status parse_stride(Problem& p, std::string_view text) {
    const auto value = parse_integer(text);
    if (!value || *value < 0) return needs("a stride in elements, 0 or more", text);
    access(p) = *value;
    return {};
}

template <auto access, std::int64_t value>
bool number_is(const Problem& p) {
    return access(const_cast<Problem&>(p)) == value;
}

// ---- spatial extents -----------------------------------------------------------------------------------------

// One number stands for every dimension once `in` has said how many there are.
Status read_extents(const Problem& p, std::string_view text, Extents& out) {
    const auto values = parse_extents(text);
    if (!values || values->size() > kMaxSpatialDims) return needs("extents such as 3, 3x3 or 3x3x3", text);
    out = Extents{};
    out.rank = static_cast<int>(values->size());
    for (int i = 0; i < out.rank; ++i) out[i] = (*values)[static_cast<std::size_t>(i)];
    const int rank = p.conv.in.rank;
    if (rank != 0 && out.rank == 1) out = filled(rank, out[0]);
    if (rank != 0 && out.rank != rank) {
        return usage_error(fmt::format("'{}' has {} dimensions, in has {}", text, out.rank, rank));
    }
    return {};
}

Status parse_in(Problem& p, std::string_view text) {
    p.conv.in = Extents{};
    Extents in;
    if (auto status = read_extents(p, text, in); !status) return status;
    p.conv.in = in;
    p.conv.stride = p.conv.dilation = filled(in.rank, 1);
    p.conv.pad_before = p.conv.pad_after = filled(in.rank, 0);
    p.layout = channels_last(in.rank);
    return {};
}

template <Extents ConvShape::*member>
Status parse_spatial(Problem& p, std::string_view text) {
    return read_extents(p, text, p.conv.*member);
}

std::string print_spatial(const Extents& extents) {
    return print_extents({extents.size.data(), static_cast<std::size_t>(extents.rank)});
}

template <Extents ConvShape::*member>
std::string print_spatial(const Problem& p) {
    return print_spatial(p.conv.*member);
}

// "1x2" pads both sides alike, "1:0x2:1" gives before:after for each dimension.
Status parse_pad(Problem& p, std::string_view text) {
    std::string before, after;
    for (const std::string_view part : split(text, 'x')) {
        const auto sides = split(part, ':');
        if (sides.size() > 2 || !parse_integer(sides.front()) || !parse_integer(sides.back())) {
            return needs("pads such as 1x1 or 1:0x2:1 (before:after)", text);
        }
        before += fmt::format("{}{}", before.empty() ? "" : "x", sides.front());
        after += fmt::format("{}{}", after.empty() ? "" : "x", sides.back());
    }
    if (auto status = read_extents(p, before, p.conv.pad_before); !status) return status;
    return read_extents(p, after, p.conv.pad_after);
}

std::string print_pad(const Problem& p) {
    const Extents &before = p.conv.pad_before, &after = p.conv.pad_after;
    if (before == after) return print_spatial(before);
    std::string text;
    for (int i = 0; i < before.rank; ++i) {
        text += fmt::format("{}{}:{}", i ? "x" : "", before[i], after[i]);
    }
    return text;
}

// ---- words ---------------------------------------------------------------------------------------------------

template <class E, E Problem::*member>
Status parse_word(Problem& p, std::string_view text) {
    auto value = parse_enum<E>(text);
    if (!value) return value.error();
    p.*member = *value;
    return {};
}

template <class E, E Problem::*member>
std::string print_word(const Problem& p) {
    return std::string(name_of(p.*member));
}

template <class E, E Problem::*member, E value>
bool word_is(const Problem& p) {
    return p.*member == value;
}

template <DType Problem::*member>
Status parse_type(Problem& p, std::string_view text) {
    const auto dtype = read_dtype(text);
    if (!dtype) return dtype.error();
    p.*member = *dtype;
    return {};
}

Status parse_dtype(Problem& p, std::string_view text) {
    if (auto status = parse_type<&Problem::dtype_a>(p, text); !status) return status;
    p.dtype_b = p.dtype_a;
    p.dtype_out = default_output(p.dtype_a);
    return {};
}

// Layouts without groups, as other libraries name them. They are not taken for ours: their weights lie otherwise, too.
Status refuse_layout_without_groups(std::string_view text) {
    constexpr std::pair<std::string_view, Layout> kOthers[] = {
        {"nwc", Layout::nwgc}, {"nhwc", Layout::nhwgc}, {"ndhwc", Layout::ndhwgc},
        {"ncw", Layout::ngcw}, {"nchw", Layout::ngchw}, {"ncdhw", Layout::ngcdhw},
    };
    for (const auto& [other, ours] : kOthers) {
        if (other != text) continue;
        return usage_error(
            fmt::format("layout '{}' has no groups; activations of that order are '{}', with weights in the "
                        "order g, k, filter, c. tilewise.torch takes tensors and weights as torch has them",
                        text, name_of(ours)));
    }
    return {};
}

Status parse_layout(Problem& p, std::string_view text) {
    if (auto status = refuse_layout_without_groups(text); !status) return status;
    if (auto status = parse_word<Layout, &Problem::layout>(p, text); !status) return status;
    if (p.layout == Layout::any) return usage_error("'any' is for kernels; a problem has one layout");
    return {};
}

// ---- the epilogue --------------------------------------------------------------------------------------------

// D tensors that come last are a field of their own, `d`, which is read after `epilogue`.
std::size_t first_last_d(const Problem& p) {
    std::size_t first = p.epilogue.size();
    while (first > 0 && reads_d(p.epilogue[first - 1])) --first;
    return first;
}

// "bias+gelu"
Status parse_epilogue(Problem& p, std::string_view text) {
    for (const std::string_view word : split(text, '+')) {
        auto op = parse_enum<EpilogueOp>(word);
        if (!op) return op.error();
        p.epilogue.push_back(*op);
    }
    return {};
}
Status parse_d(Problem& p, std::string_view text) {
    for (const std::string_view word : split(text, '+')) {
        if (word != "add" && word != "mul")
            return usage_error(fmt::format("unknown D operation '{}'; need add or mul", word.substr(0, 64)));
    }
    return parse_epilogue(p, text);
}

std::string print_ops(const Problem& p, std::size_t begin, std::size_t end) {
    std::string text;
    for (std::size_t i = begin; i < end; ++i) text += (i == begin ? "" : "+") + std::string(name_of(p.epilogue[i]));
    return text;
}

template <bool Problem::*member>
Status parse_flag(Problem& p, std::string_view text) {
    if (text != "0" && text != "1") return needs("0 or 1", text);
    p.*member = text == "1";
    return {};
}

template <bool Problem::*member>
std::string print_flag(const Problem& p) {
    return p.*member ? "1" : "0";
}

Status parse_workspace(Problem& p, std::string_view text) {
    const auto bytes = parse_bytes(text);
    if (!bytes) return needs("a byte count such as 0, 4096, 64M or 2G", text);
    p.workspace_bytes = *bytes;
    return {};
}

bool never(const Problem&) { return false; }

constexpr bool kGemm = true, kConv = true, kNo = false;
constexpr Presence kRequired = Presence::required, kShown = Presence::shown, kOptional = Presence::optional;

// NOLINTNEXTLINE(bugprone-macro-parentheses): a lambda as a template argument cannot be in any
#define NUMBER(expression) [](Problem& p) -> std::int64_t& { return p.expression; }
#define NUMBER_FIELD(key, in_gemm, in_conv, presence, expression, default_value, help)                             \
    {                                                                                                              \
        key, in_gemm, in_conv, presence, help, parse_number<NUMBER(expression)>, print_number<NUMBER(expression)>, \
            number_is<NUMBER(expression), default_value>                                                           \
    }
#define STRIDE_FIELD(key, expression, help)                                                                   \
    {                                                                                                         \
        key, kGemm, kNo, kOptional, help, parse_stride<NUMBER(expression)>, print_number<NUMBER(expression)>, \
            number_is<NUMBER(expression), kPacked>                                                            \
    }

const ProblemField kFields[] = {
    NUMBER_FIELD("m", kGemm, kNo, kRequired, gemm.m, 0, "rows of A and C"),
    NUMBER_FIELD("n", kGemm, kNo, kRequired, gemm.n, 0, "columns of B and C"),
    NUMBER_FIELD("k", kGemm, kNo, kRequired, gemm.k, 0, "columns of A, rows of B"),
    NUMBER_FIELD("n", kNo, kConv, kRequired, conv.n, 0, "images"),
    NUMBER_FIELD("g", kNo, kConv, kShown, conv.g, 1, "groups"),
    NUMBER_FIELD("c", kNo, kConv, kRequired, conv.c, 0, "input channels, all groups together"),
    NUMBER_FIELD("k", kNo, kConv, kRequired, conv.k, 0, "output channels, all groups together"),
    {"in", kNo, kConv, kRequired, "input extents, outermost first: W, HxW or DxHxW", parse_in,
     print_spatial<&ConvShape::in>, [](const Problem& p) { return p.conv.in.rank == 0; }},
    {"filter", kNo, kConv, kRequired, "filter extents", parse_spatial<&ConvShape::filter>,
     print_spatial<&ConvShape::filter>, [](const Problem& p) { return p.conv.filter.rank == 0; }},
    {"stride", kNo, kConv, kShown, "stride, 1 unless given", parse_spatial<&ConvShape::stride>,
     print_spatial<&ConvShape::stride>, never},
    {"pad", kNo, kConv, kShown, "padding, 0 unless given; 1:0x2:1 is before:after", parse_pad, print_pad, never},
    {"dilation", kNo, kConv, kShown, "dilation, 1 unless given", parse_spatial<&ConvShape::dilation>,
     print_spatial<&ConvShape::dilation>, never},
    {"dtype", kGemm, kConv, kRequired, "element type of the inputs: fp32 fp16 bf16 fp8 bf8 int8", parse_dtype,
     print_word<DType, &Problem::dtype_a>, never},
    {"layout", kGemm, kConv, kShown, "GEMM: r or c for A, B, C (rcr); convolution: nhwgc and its kin", parse_layout,
     print_word<Layout, &Problem::layout>, never},
    NUMBER_FIELD("batch", kGemm, kNo, kOptional, gemm.batch, 1, "independent products"),
    {"b", kGemm, kConv, kOptional, "element type of the second input, where it differs", parse_type<&Problem::dtype_b>,
     print_word<DType, &Problem::dtype_b>, [](const Problem& p) { return p.dtype_b == p.dtype_a; }},
    {"out", kGemm, kConv, kOptional, "element type of the output, where it is not the usual one",
     parse_type<&Problem::dtype_out>, print_word<DType, &Problem::dtype_out>,
     [](const Problem& p) { return p.dtype_out == default_output(p.dtype_a); }},
    STRIDE_FIELD("lda", gemm.leading[0], "elements between rows of A as stored"),
    STRIDE_FIELD("ldb", gemm.leading[1], "elements between rows of B as stored"),
    STRIDE_FIELD("ldc", gemm.leading[2], "elements between rows of C as stored"),
    STRIDE_FIELD("batch_stride_a", gemm.batch_stride[0], "elements between matrices of A; 0 shares one"),
    STRIDE_FIELD("batch_stride_b", gemm.batch_stride[1], "elements between matrices of B; 0 shares one"),
    STRIDE_FIELD("batch_stride_c", gemm.batch_stride[2], "elements between matrices of C"),
    {"epilogue", kGemm, kConv, kOptional, "fused operations in order, such as bias+gelu or bias+add+relu",
     parse_epilogue, [](const Problem& p) { return print_ops(p, 0, first_last_d(p)); },
     [](const Problem& p) { return first_last_d(p) == 0; }},
    {"d", kGemm, kConv, kOptional, "further tensors combined with the result, such as add+mul", parse_d,
     [](const Problem& p) { return print_ops(p, first_last_d(p), p.epilogue.size()); },
     [](const Problem& p) { return first_last_d(p) == p.epilogue.size(); }},
    {"beta", kGemm, kConv, kOptional, "1 when beta*C is added", parse_flag<&Problem::beta>, print_flag<&Problem::beta>,
     [](const Problem& p) { return !p.beta; }},
    {"packed_b", kGemm, kConv, kOptional, "1 when B (weights) was packed ahead by the kernel that reads it",
     parse_flag<&Problem::packed_b>, print_flag<&Problem::packed_b>, [](const Problem& p) { return !p.packed_b; }},
    {"scale", kGemm, kConv, kOptional, "scale factors of the inputs: tensor, or row (one per row of A, column of B)",
     parse_word<Scale, &Problem::scale>, print_word<Scale, &Problem::scale>,
     word_is<Scale, &Problem::scale, Scale::none>},
    {"math", kGemm, kConv, kOptional, "strict, fast, tf32 or tf32x3", parse_word<Math, &Problem::math>,
     print_word<Math, &Problem::math>, word_is<Math, &Problem::math, Math::strict>},
    NUMBER_FIELD("align", kGemm, kConv, kOptional, align_bytes, kDefaultAlignBytes,
                 "bytes every pointer is a multiple of"),
    {"deterministic", kGemm, kConv, kOptional, "1 when the same bits must come out every time",
     parse_flag<&Problem::deterministic>, print_flag<&Problem::deterministic>,
     [](const Problem& p) { return !p.deterministic; }},
    {"workspace", kGemm, kConv, kOptional, "most scratch memory a kernel may use, such as 64M", parse_workspace,
     [](const Problem& p) { return print_bytes(p.workspace_bytes); },
     [](const Problem& p) { return p.workspace_bytes == kNoWorkspaceLimit; }},
};

}  // namespace

std::span<const ProblemField> problem_fields() { return kFields; }

}  // namespace tilewise
