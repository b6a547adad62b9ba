// SPDX-License-Identifier: MIT
#include "family/code_rules.hpp"

#include <algorithm>

#include "config/geometry.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr int kAccessBytes = 16;  // the widest access of a thread

// Configs are asked about before they are known to be valid, so what follows could divide by zero or overflow.
bool beyond_sizes(const Family&, const KernelConfig& c, Rejected* out) {
    constexpr int kMost = 4096;  // more than any template has, also products of the waves
    const auto list = {c.tile.m,
                       c.tile.n,
                       c.tile.k,
                       c.wave.m,
                       c.wave.n,
                       c.wave.k,
                       c.warp_tile.m,
                       c.warp_tile.n,
                       c.warp_tile.k,
                       c.vector_a,
                       c.vector_b,
                       c.vector_c,
                       c.cluster.m,
                       c.cluster.n,
                       c.stages,
                       c.split_k,
                       c.num_groups_to_merge,
                       c.blocks_per_unit};
    return (std::min(list) < 1 || std::max(list) > kMost || wave_count(c) > kMost) &&
           refuse(out, TILEWISE_TEXT("numbers from {} to {}", std::min(list), std::max(list)),
                  TILEWISE_TEXT("1 to {}", kMost));
}

bool other_op(const Family& family, const KernelConfig& c, Rejected* out) {
    return std::find(family.ops.begin(), family.ops.end(), c.op) == family.ops.end() &&
           refuse(out, TILEWISE_TEXT("{}", name_of(c.op)), TILEWISE_TEXT("an operation of {}", family.name()));
}

bool any_layout(const Family& family, const KernelConfig& c, Rejected* out) {
    return family.is_gpu() && c.layout == Layout::any &&
           refuse(out, TILEWISE_TEXT("layout any"), TILEWISE_TEXT("one layout"));
}
void correct_layout(const Family&, KernelConfig& c) {
    constexpr Layout kChannelsLast[] = {Layout::nwgc, Layout::nhwgc, Layout::ndhwgc};
    c.layout = c.op == Op::gemm ? Layout::rcr : kChannelsLast[std::clamp(c.ndim, 1, kMaxSpatialDims) - 1];
}

bool other_scheduler(const Family& family, const KernelConfig& c, Rejected* out) {
    const bool has =
        c.scheduler == Scheduler::intrawave || (family.has_interwave && c.scheduler == Scheduler::interwave);
    return family.is_gpu() && !has &&
           refuse(out, TILEWISE_TEXT("{}", name_of(c.scheduler)), TILEWISE_TEXT("intrawave"));
}
void correct_scheduler(const Family&, KernelConfig& c) { c.scheduler = Scheduler::intrawave; }

bool other_pipeline(const Family& family, const KernelConfig& c, Rejected* out) {
    const auto& has = family.pipelines;
    if (has.empty() || std::find(has.begin(), has.end(), c.pipeline) != has.end()) return false;
    return refuse(out, TILEWISE_TEXT("{}", name_of(c.pipeline)), [&] {
        std::string text;
        for (const Pipeline pipeline : has) text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(pipeline));
        return text + fmt::format(" for {}", family.name());
    });
}
void correct_pipeline(const Family& family, KernelConfig& c) { c.pipeline = family.pipelines.front(); }

bool varies(const Family& family, const KernelConfig& c, Rejected* out) {
    return family.is_gpu() && !c.deterministic && c.stream_k != StreamK::atomic &&
           refuse(out, TILEWISE_TEXT("sums that vary without stream_k atomic"), TILEWISE_TEXT("deterministic"));
}
void correct_determinism(const Family&, KernelConfig& c) { c.deterministic = true; }

const ConfigField* changed_field(const Family& family, const KernelConfig& c) {
    for (const std::string_view name : family.fixed) {
        const ConfigField* field = find_field(name);
        if (field && !field->is_default(c)) return field;
    }
    return nullptr;
}
bool other_option(const Family& family, const KernelConfig& c, Rejected* out) {
    const ConfigField* field = changed_field(family, c);
    return field && refuse(
                        out,
                        [&] {
                            std::string text = fmt::format("{} ", field->name);
                            field->print(c, text);
                            return text;
                        },
                        [&] {
                            KernelConfig usual = c;
                            field->reset(usual);
                            std::string text;
                            field->print(usual, text);
                            return fmt::format("{} for {}", text, family.name());
                        });
}
void correct_options(const Family& family, KernelConfig& c) {
    while (const ConfigField* field = changed_field(family, c)) field->reset(c);
}

constexpr CodeRule kCodeRules[] = {
    {"code_sizes", "no template has larger or smaller numbers", beyond_sizes},
    {"code_op", "the family computes the operation", other_op},
    {"code_layout", "a GPU kernel is compiled for one layout", any_layout, correct_layout},
    {"code_scheduler", "templates for GPUs interleave within a wave", other_scheduler, correct_scheduler},
    {"code_deterministic", "only atomic stream-K varies", varies, correct_determinism},
    {"code_pipeline", "the family has a loop for the pipeline", other_pipeline, correct_pipeline},
    {"code_option", "the family does without the option", other_option, correct_options},
};

}  // namespace

std::span<const CodeRule> code_rules() { return kCodeRules; }

namespace code {

bool waves_along_k(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.wave.k != 1 && refuse(out, TILEWISE_TEXT("{} waves along k", c.wave.k), TILEWISE_TEXT("1"));
}
bool waves_along_n(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.wave.n != 1 && refuse(out, TILEWISE_TEXT("{} waves along n", c.wave.n), TILEWISE_TEXT("1"));
}
bool channels_first(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !is_channels_last(c.layout) &&
           refuse(out, TILEWISE_TEXT("{}", name_of(c.layout)), TILEWISE_TEXT("a layout with channels last"));
}
static bool is_16_bit(DType dtype) { return dtype == DType::fp16 || dtype == DType::bf16; }
bool other_inputs(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !(c.dtype == c.dtype_b && is_16_bit(c.dtype)) &&
           refuse(out, TILEWISE_TEXT("{} x {}", name_of(c.dtype), name_of(c.dtype_b)), TILEWISE_TEXT("fp16 or bf16"));
}
bool other_types(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !(c.dtype == c.dtype_b && c.dtype == c.dtype_out && is_16_bit(c.dtype)) &&
           refuse(out, TILEWISE_TEXT("{} x {} -> {}", name_of(c.dtype), name_of(c.dtype_b), name_of(c.dtype_out)),
                  TILEWISE_TEXT("fp16 or bf16 throughout"));
}
bool compiled_in(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return (c.ct_filter.rank != 0 || c.ct_stride.rank != 0 || c.ct_dilation.rank != 0) &&
           refuse(out, TILEWISE_TEXT("a filter, stride or dilation that is compiled in"), TILEWISE_TEXT("none"));
}
bool direct_results(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.epilogue != Epilogue::cshuffle &&
           refuse(out, TILEWISE_TEXT("epilogue {}", name_of(c.epilogue)), TILEWISE_TEXT("cshuffle"));
}
bool not_persistent(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !c.persistent && refuse(out, TILEWISE_TEXT("a block for every tile"), TILEWISE_TEXT("persistent"));
}
bool other_producers(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.producer_waves != 1 &&
           refuse(out, TILEWISE_TEXT("{} producer waves", c.producer_waves), TILEWISE_TEXT("1"));
}
bool sums_apart(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !c.two_stage && !c.cluster_k &&
           refuse(out, TILEWISE_TEXT("sums that do not meet"), TILEWISE_TEXT("two_stage or cluster_k"));
}
bool narrow_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const std::int64_t bytes = bytes_of(c.dtype);
    return (c.vector_a * bytes != kAccessBytes || c.vector_b * bytes != kAccessBytes) &&
           refuse(out, TILEWISE_TEXT("vectors of {} and {} elements", c.vector_a, c.vector_b),
                  TILEWISE_TEXT("{} each", kAccessBytes / bytes));
}
bool crosses_columns(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !drains_whole_vectors(c) && refuse(out, TILEWISE_TEXT("vectors of {} results", c.vector_c),
                                              TILEWISE_TEXT("no more than leave a warp together"));
}
bool other_mma(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr Shape3 kShape{16, 8, 16};
    return c.warp_tile != kShape && refuse(out, TILEWISE_TEXT("warp tile {}", print_shape(c.warp_tile)),
                                           TILEWISE_TEXT("{}", print_shape(kShape)));
}

}  // namespace code

}  // namespace tilewise
