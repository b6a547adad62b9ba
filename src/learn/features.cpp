// SPDX-License-Identifier: MIT
#include "learn/features.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "config/family_id.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

double octaves(double size) { return std::log2(std::max(1.0, size)); }
double octaves(std::int64_t size) { return octaves(static_cast<double>(size)); }

double roof_of(const WorkProblem& problem) {
    const Problem& p = problem.view.problem;
    const ArchSpec& arch = problem.arch;
    const double compute = flops(p) / (peak_tflops<double>(arch, p.dtype_a) * 1e6);
    const double memory = problem.bytes / (std::max(1.0, arch.memory_gbps) * 1e3);
    return std::max({compute, memory, 1e-3});
}

// The largest power of 2, up to a cache line, that the rows of an operand all begin at a multiple of.
double row_octaves(const Problem& p, int operand) {
    constexpr std::int64_t kLine = 128;
    const DType dtype = operand == 0 ? p.dtype_a : operand == 1 ? p.dtype_b : p.dtype_out;
    const std::int64_t bytes = (leading_stride(p, operand) * bytes_of(dtype)) | p.align_bytes | kLine;
    return octaves(bytes & -bytes);
}

// ---- Columns of the problem: sizes first, which a model's ranges are about ----

struct ProblemColumn {
    std::string_view name;
    double (*value)(const WorkProblem&);
    std::span<const std::string_view> words{};
    bool is_ranged = false;
};

template <class E>
double word(E value) {
    return static_cast<double>(value);
}

const ProblemColumn kGemmColumns[] = {
    {"log2_m", [](const WorkProblem& w) { return octaves(w.view.gemm.m); }, {}, true},
    {"log2_n", [](const WorkProblem& w) { return octaves(w.view.gemm.n); }, {}, true},
    {"log2_k", [](const WorkProblem& w) { return octaves(w.view.gemm.k); }, {}, true},
    {"log2_batch", [](const WorkProblem& w) { return octaves(w.view.gemm.batch); }, {}, true},
    {"log2_rows_a", [](const WorkProblem& w) { return row_octaves(w.view.problem, 0); }},
    {"log2_rows_b", [](const WorkProblem& w) { return row_octaves(w.view.problem, 1); }},
    {"log2_rows_c", [](const WorkProblem& w) { return row_octaves(w.view.problem, 2); }},
};

const ProblemColumn kConvColumns[] = {
    {"log2_images", [](const WorkProblem& w) { return octaves(w.view.problem.conv.n); }, {}, true},
    {"log2_groups", [](const WorkProblem& w) { return octaves(w.view.problem.conv.g); }, {}, true},
    {"log2_c", [](const WorkProblem& w) { return octaves(w.view.problem.conv.c / w.view.problem.conv.g); }, {}, true},
    {"log2_k", [](const WorkProblem& w) { return octaves(w.view.problem.conv.k / w.view.problem.conv.g); }, {}, true},
    {"log2_pixels", [](const WorkProblem& w) { return octaves(product(output_size(w.view.problem.conv))); }, {}, true},
    {"log2_taps", [](const WorkProblem& w) { return octaves(product(w.view.problem.conv.filter)); }, {}, true},
    {"log2_row",
     [](const WorkProblem& w) {
         const Extents output = output_size(w.view.problem.conv);
         return octaves(output[output.rank - 1]);
     }},
    {"stride", [](const WorkProblem& w) { return static_cast<double>(product(w.view.problem.conv.stride)); }},
};

const ProblemColumn kCommonColumns[] = {
    {"dtype", [](const WorkProblem& w) { return word(w.view.problem.dtype_a); }, EnumNames<DType>::names},
    {"layout", [](const WorkProblem& w) { return word(w.view.problem.layout); }, EnumNames<Layout>::names},
    {"log2_intensity", [](const WorkProblem& w) { return std::log2(flops(w.view.problem) / w.bytes); }},
    {"log2_roof_us", [](const WorkProblem& w) { return std::log2(roof_of(w)); }},
    {"chain", [](const WorkProblem& w) { return w.chain.instructions; }},
};

std::span<const ProblemColumn> own_columns(Op op) {
    return is_conv(op) ? std::span<const ProblemColumn>(kConvColumns) : std::span<const ProblemColumn>(kGemmColumns);
}

// ---- Columns of the config, from the field table ----

// What a problem says as well, or all kernels of a model have in common.
constexpr bool follows_from_problem(std::string_view field) {
    for (const std::string_view given : {"op", "dtype", "layout", "ndim", "dtype_b", "dtype_out", "arch"}) {
        if (field == given) return true;
    }
    return false;
}

// What concerns convolutions alone and is there or not shares one number, a bit each: a problem leaves few such choices.
struct ConvFlags {
    int bits = 0, count = 0;

    void add(bool flag) { bits |= (flag ? 1 : 0) << count++; }
};

template <class Sink, class T>
void visit_field(std::string_view name, Scope scope, const T& value, ConvFlags& flags, Sink& sink) {
    if constexpr (std::is_same_v<T, Extents>) {
        flags.add(value.rank > 0);
    } else if constexpr (std::is_same_v<T, bool>) {
        if (scope == Scope::conv) return flags.add(value);
        sink.number(name, "", value ? 1 : 0);
    } else if constexpr (std::is_same_v<T, int>) {
        sink.number(name, "", value);
    } else if constexpr (std::is_same_v<T, Padding>) {
        sink.number(name, "", (value.m ? 1 : 0) + (value.n ? 2 : 0) + (value.k ? 4 : 0));
    } else if constexpr (std::is_enum_v<T>) {
        sink.category(name, EnumNames<T>::names, word(value));
    } else {
        sink.number(name, "_m", value.m);
        sink.number(name, "_n", value.n);
        if constexpr (std::is_same_v<T, Shape3>) sink.number(name, "_k", value.k);
    }
}

template <class Sink>
void visit_config(const KernelConfig& c, Op op, Sink& sink) {
    ConvFlags flags;
    sink.category("family", EnumNames<FamilyId>::names, word(family_of(c)));
#define FIELD(type, name, default_value, mark, scope, role, tag, help) \
    if constexpr (!follows_from_problem(#name)) {                      \
        if (Scope::scope != (is_conv(op) ? Scope::gemm : Scope::conv)) \
            visit_field(#name, Scope::scope, c.name, flags, sink);     \
    }
#include "config/fields.def"
#undef FIELD
    if (is_conv(op)) sink.number("conv_flags", "", flags.bits);
}

// ---- Columns of the work ----

template <class Sink>
void visit_work(const WorkProblem& problem, const KernelConfig& c, double analytic_us, const WorkParts& parts,
                double roof_us, Sink& sink) {
    const GemmView& v = problem.view.gemm;
    const auto rows = static_cast<double>(c.swap_ab ? v.n : v.m), columns = static_cast<double>(c.swap_ab ? v.m : v.n);
    const double tile_m = std::max(1, c.tile.m), tile_n = std::max(1, c.tile.n), tile_k = std::max(1, c.tile.k);
    const double tiles_m = std::ceil(rows / tile_m), tiles_n = std::ceil(columns / tile_n),
                 parts_k = std::max(1, c.split_k);
    const double units = problem.arch.is_gpu() ? problem.arch.units : problem.threads;
    sink.number("over_roof", "", analytic_us / roof_us);
    sink.number("waste", "", tiles_m * tile_m * tiles_n * tile_n / std::max(1.0, rows * columns));
    sink.number("steps", "", std::ceil(static_cast<double>(v.k) / (tile_k * parts_k)));
    sink.number("tiles_per_unit", "",
                tiles_m * tiles_n * static_cast<double>(v.batch) * parts_k / std::max(1.0, units));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool is_count = static_cast<WorkPart>(i) == WorkPart::rounds;
        sink.number("work_", EnumNames<WorkPart>::names[i], is_count ? parts[i] : parts[i] / roof_us);
    }
}

// ---- The two sinks ----

struct ColumnNames {
    std::vector<FeatureColumn>& columns;

    void number(std::string_view name, std::string_view end, double) {
        columns.push_back({fmt::format("{}{}", name, end)});
    }
    void category(std::string_view name, std::span<const std::string_view> words, double) {
        columns.push_back({std::string(name), {words.begin(), words.end()}});
    }
};

struct ColumnValues {
    double* at;

    void number(std::string_view, std::string_view, double value) { *at++ = value; }
    void category(std::string_view, std::span<const std::string_view>, double place) { *at++ = place; }
};

FeatureSchema make_schema(Op op) {
    FeatureSchema schema;
    for (const auto columns : {own_columns(op), std::span<const ProblemColumn>(kCommonColumns)}) {
        for (const ProblemColumn& column : columns) {
            schema.columns.push_back(
                {std::string(column.name), {column.words.begin(), column.words.end()}, column.is_ranged});
        }
    }
    ColumnNames names{schema.columns};
    visit_config(KernelConfig(), op, names);
    const ArchSpec arch;
    const Problem problem;
    visit_work(WorkProblem(problem, arch, 1), KernelConfig(), 0, {}, 1, names);
    std::string text = fmt::format("{}\n", kFeatureSchema);
    for (const FeatureColumn& column : schema.columns) {
        text += fmt::format("{}:{}\n", column.name, join(column.words, ","));
    }
    constexpr std::size_t kDigits = 16;
    schema.hash = sha256_hex(text).substr(0, kDigits);
    return schema;
}

}  // namespace

const FeatureSchema& feature_schema(Op op) {
    static const FeatureSchema gemm = make_schema(Op::gemm), conv = make_schema(Op::conv_fwd);
    return is_conv(op) ? conv : gemm;
}

Json schema_to_json(const FeatureSchema& schema, Op op) {
    Json::Array names, categorical, ranged;
    Json words{Json::Object{}};
    for (std::size_t i = 0; i < schema.columns.size(); ++i) {
        const FeatureColumn& column = schema.columns[i];
        names.emplace_back(column.name);
        if (column.is_ranged) ranged.emplace_back(i);
        if (column.words.empty()) continue;
        categorical.emplace_back(i);
        Json::Array all;
        for (const std::string_view one : column.words) all.emplace_back(one);
        words.set(column.name, Json(std::move(all)));
    }
    return Json::object({{"schema", kFeatureSchema},
                         {"op", name_of(op)},
                         {"hash", schema.hash},
                         {"names", Json(std::move(names))},
                         {"categorical", Json(std::move(categorical))},
                         {"words", std::move(words)},
                         {"ranged", Json(std::move(ranged))}});
}

ProblemFeatures::ProblemFeatures(const WorkProblem& problem) : problem_(problem), roof_us_(roof_of(problem)) {
    for (const auto columns : {own_columns(op()), std::span<const ProblemColumn>(kCommonColumns)}) {
        for (const ProblemColumn& column : columns) shared_[shared_count_++] = column.value(problem);
    }
}

void ProblemFeatures::fill(const KernelConfig& config, double analytic_us, const WorkParts& parts, double* row) const {
    ColumnValues values{std::copy_n(shared_.begin(), shared_count_, row)};
    visit_config(config, op(), values);
    visit_work(problem_, config, analytic_us, parts, roof_us_, values);
}

}  // namespace tilewise
