// SPDX-License-Identifier: MIT
// The C functions on problems: from a struct to the text, and what follows from a problem. The structs need no rules of
// their own: each of their fields is read by the parser of the problem's field.
#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/text.hpp"
#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "problem/facts.hpp"
#include "problem/operand_specs.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::capi {

Result<Problem> read_problem_argument(const char* text) {
    if (!text) return usage_error("the problem is NULL");
    return read_problem(text);
}

namespace {

static_assert(sizeof(tilewise_conv::in) / sizeof(std::int64_t) == kMaxSpatialDims);

std::string text_or(const char* text, const char* otherwise) { return text ? text : otherwise; }

// The fields of a problem that come from a struct of the caller's, each a value of its own.
class StructFields {
public:
    explicit StructFields(const char* name) : name_(name) {}

    void add(const char* key, std::string value) { given_.push_back({key, std::move(value), name_}); }
    void add(const char* key, std::int64_t value) { add(key, fmt::format("{}", value)); }
    void add_unless_null(const char* key, const char* value) {
        if (value) add(key, std::string(value));
    }

    // The problem's text. Options are further fields, as text or JSON; none of them may be one that the struct has.
    Result<std::string> text(Op op, const char* options) && {
        auto more = read_options(options ? options : "");
        if (!more) return Error{more.error().code, fmt::format("{}: options: {}", name_, more.error().message)};
        for (GivenField& field : *more) {
            field.place = fmt::format("{}: options, {}", name_, field.place);
            given_.push_back(std::move(field));
        }
        const auto problem = problem_from_fields(op, given_);
        if (!problem) return problem.error();
        return print_problem(*problem);
    }

private:
    static Result<std::vector<GivenField>> read_options(std::string_view options) {
        if (!trim(options).starts_with('{')) return split_fields(options);
        const auto json = Json::parse(options);
        if (!json) return json.error();
        return fields_from_json(*json);
    }

    const char* name_;
    std::vector<GivenField> given_;
};

Result<std::string> gemm_text(const tilewise_gemm* given) {
    if (!given) return usage_error("the tilewise_gemm is NULL");
    tilewise_gemm from{};
    if (auto status = read_sized(given, "tilewise_gemm", from); !status) return status.error();
    if (!from.dtype) return usage_error("tilewise_gemm: dtype is NULL; need a word such as bf16");
    // One of them may be 0; all of them are where nobody has set any.
    if (from.m == 0 && from.n == 0 && from.k == 0) {
        return unsupported_error("tilewise_gemm: m, n and k are 0; they are not set");
    }
    StructFields fields("tilewise_gemm");
    fields.add("m", from.m), fields.add("n", from.n), fields.add("k", from.k);
    if (from.batch != 0) fields.add("batch", from.batch);
    fields.add("dtype", std::string(from.dtype));
    fields.add_unless_null("layout", from.layout);
    return std::move(fields).text(Op::gemm, from.options);
}

std::string extents(std::span<const std::int64_t> values, std::int64_t if_zero = 0) {
    std::vector<std::int64_t> resolved(values.begin(), values.end());
    std::replace(resolved.begin(), resolved.end(), std::int64_t{0}, if_zero);
    return print_extents(resolved);
}

std::string pads(std::span<const std::int64_t> before, std::span<const std::int64_t> after) {
    std::string text;
    for (std::size_t i = 0; i < before.size(); ++i) text += fmt::format("{}{}:{}", i ? "x" : "", before[i], after[i]);
    return text;
}

Result<std::string> conv_text(const tilewise_conv* given) {
    if (!given) return usage_error("the tilewise_conv is NULL");
    tilewise_conv from{};
    if (auto status = read_sized(given, "tilewise_conv", from); !status) return status.error();
    if (!from.dtype) return usage_error("tilewise_conv: dtype is NULL; need a word such as bf16");
    if (from.dims < 1 || from.dims > kMaxSpatialDims) {
        return usage_error(fmt::format("tilewise_conv: dims is {}; need 1 to {}", from.dims, kMaxSpatialDims));
    }
    const std::string op = text_or(from.op, "conv_fwd");
    const auto known = parse_enum<Op>(op);
    if (!known) return known.error();
    if (!is_conv(*known))
        return usage_error("tilewise_conv: op is gemm; need conv_fwd, conv_bwd_data or conv_bwd_weight");
    const auto of = [&](const std::int64_t(&values)[kMaxSpatialDims]) {
        return std::span(values).first(static_cast<std::size_t>(from.dims));
    };
    StructFields fields("tilewise_conv");
    fields.add("n", from.n), fields.add("g", from.g == 0 ? 1 : from.g), fields.add("c", from.c),
        fields.add("k", from.k);
    fields.add("in", extents(of(from.in))), fields.add("filter", extents(of(from.filter)));
    fields.add("stride", extents(of(from.stride), 1)), fields.add("dilation", extents(of(from.dilation), 1));
    fields.add("pad", pads(of(from.pad_before), of(from.pad_after)));
    fields.add("dtype", std::string(from.dtype));
    fields.add_unless_null("layout", from.layout);
    return std::move(fields).text(*known, from.options);
}

Result<std::string> describe_problem(const char* text) {
    const auto problem = read_problem_argument(text);
    if (!problem) return problem.error();
    const GemmView view = gemm_view(*problem);
    Json json =
        Json::object({{"text", print_problem(*problem)},
                      {"problem", problem_to_json(*problem)},
                      {"flops", flops(*problem)},
                      {"bytes", bytes_moved(*problem)},
                      {"gemm", Json::object({{"m", view.m}, {"n", view.n}, {"k", view.k}, {"batch", view.batch}})}});
    if (is_conv(problem->op)) {
        const Extents out = output_size(problem->conv);
        json.set("output", Json(Json::Array(out.size.begin(), out.size.begin() + out.rank)));
    }
    json.set("operands", operands_to_json(operand_specs(*problem)));
    return json.dump();
}

Status work(const char* text, double* flop_count, double* byte_count) {
    const auto problem = read_problem_argument(text);
    if (!problem) return problem.error();
    if (flop_count) *flop_count = flops(*problem);
    if (byte_count) *byte_count = bytes_moved(*problem);
    return {};
}

Status fill_tensor(const OperandSpec& spec, tilewise_tensor* out) {
    constexpr std::size_t kMaxRank = sizeof(tilewise_tensor::shape) / sizeof(std::int64_t);
    if (spec.shape.size() > kMaxRank) return usage_error("tilewise_tensor: too many dimensions for the struct");
    tilewise_tensor tensor{};
    const std::string_view dtype = name_of(spec.dtype);
    dtype.copy(tensor.dtype, sizeof(tensor.dtype) - 1);
    tensor.rank = static_cast<std::int32_t>(spec.shape.size());
    std::int64_t last = 0;
    for (std::size_t i = 0; i < spec.shape.size(); ++i) {
        tensor.shape[i] = spec.shape[i];
        tensor.strides[i] = spec.strides[i];
        last += (spec.shape[i] - 1) * spec.strides[i];
    }
    tensor.bytes = (last + 1) * bytes_of(spec.dtype);
    return write_sized(tensor, "tilewise_tensor", out);
}

Status operand(const char* text, const char* name, tilewise_tensor* out) {
    const auto problem = read_problem_argument(text);
    if (!problem) return problem.error();
    if (!name) return usage_error("the name of the operand is NULL");
    std::string there;
    for (const OperandSpec& spec : operand_specs(*problem)) {
        if (spec.name == name) return fill_tensor(spec, out);
        there += (there.empty() ? "" : ", ") + spec.name;
    }
    return usage_error(fmt::format("the problem has no operand '{}'; it has {}", name, there));
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_problem_text(const char* problem, char** text) {
    return tilewise::capi::give_text(text, [&]() -> tilewise::Result<std::string> {
        const auto read = tilewise::capi::read_problem_argument(problem);
        if (!read) return read.error();
        return tilewise::print_problem(*read);
    });
}

tilewise_status tilewise_gemm_text(const tilewise_gemm* gemm, char** text) {
    return tilewise::capi::give_text(text, [&] { return tilewise::capi::gemm_text(gemm); });
}

tilewise_status tilewise_conv_text(const tilewise_conv* conv, char** text) {
    return tilewise::capi::give_text(text, [&] { return tilewise::capi::conv_text(conv); });
}

tilewise_status tilewise_problem_describe(const char* problem, char** json) {
    return tilewise::capi::give_text(json, [&] { return tilewise::capi::describe_problem(problem); });
}

tilewise_status tilewise_problem_work(const char* problem, double* flops, double* bytes) {
    return tilewise::capi::guarded([&] { return tilewise::capi::work(problem, flops, bytes); });
}

tilewise_status tilewise_problem_operand(const char* problem, const char* name, tilewise_tensor* tensor) {
    return tilewise::capi::guarded([&] { return tilewise::capi::operand(problem, name, tensor); });
}

}  // extern "C"
