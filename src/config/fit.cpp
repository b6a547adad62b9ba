// SPDX-License-Identifier: MIT
#include "config/fit.hpp"

#include <algorithm>
#include <tuple>

#include "base/bounded_product.hpp"
#include "base/rounding.hpp"
#include "config/conv_fit.hpp"
#include "config/conv_tiles.hpp"
#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "config/packing.hpp"
#include "config/rule_groups.hpp"
#include "problem/empty_problem.hpp"
#include "problem/facts.hpp"

namespace tilewise {

ProblemView::ProblemView(const Problem& p)
    : problem(p), gemm(gemm_view(p)), elements(operand_elements(p)), longest_strides(elements) {
    for (int i = 0; i < 3 && !is_conv(p.op); ++i) {
        std::int64_t& longest = longest_strides[static_cast<std::size_t>(i)];
        longest = std::max({leading_stride(p, i), batch_stride(p, i), longest});
    }
}

bool starts_aligned(const Problem& p, const KernelConfig& c, int operand) {
    const int width = vector_width(c, operand);
    if (width <= 1) return true;
    if (p.align_bytes % access_bytes(c, operand) != 0) return false;
    if (is_conv(p.op)) return true;  // packed: rows follow each other, and their length is checked
    const bool rows = leading_stride(p, operand) % width == 0;
    return rows && (p.gemm.batch == 1 || batch_stride(p, operand) % width == 0);
}

namespace {

bool other_op(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.op != v.problem.op &&
           refuse(out, TILEWISE_TEXT("a kernel for {}", name_of(c.op)), TILEWISE_TEXT("{}", name_of(v.problem.op)));
}

bool is_nothing(const ProblemView& v, const KernelConfig&, const ArchSpec&, Rejected* out) {
    return is_empty(v.gemm) && refuse(out, TILEWISE_TEXT("an empty dimension"),
                                      TILEWISE_TEXT("sizes of 1 or more; a kernel is chosen for a stand-in"));
}

bool other_dtype(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const Problem& p = v.problem;
    const bool same = c.dtype == p.dtype_a && c.dtype_b == p.dtype_b && c.dtype_out == p.dtype_out;
    return !same &&
           refuse(out, TILEWISE_TEXT("{} x {} -> {}", name_of(c.dtype), name_of(c.dtype_b), name_of(c.dtype_out)),
                  TILEWISE_TEXT("{} x {} -> {}", name_of(p.dtype_a), name_of(p.dtype_b), name_of(p.dtype_out)));
}

bool other_dimensions(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return is_conv(c.op) && c.ndim != v.problem.conv.in.rank &&
           refuse(out, TILEWISE_TEXT("{}-D", c.ndim), TILEWISE_TEXT("{}-D", v.problem.conv.in.rank));
}

bool other_layout(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.layout != Layout::any && c.layout != v.problem.layout &&
           refuse(out, TILEWISE_TEXT("{}", name_of(c.layout)), TILEWISE_TEXT("{} or any", name_of(v.problem.layout)));
}

// A stricter kernel may serve a looser problem, never the other way round.
bool looser_math(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const Math have = c.math, asked = v.problem.math;
    const bool serves = have == Math::strict || have == asked || (have == Math::tf32x3 && asked == Math::tf32);
    return !serves &&
           refuse(out, TILEWISE_TEXT("math {}", name_of(have)), TILEWISE_TEXT("{} or stricter", name_of(asked)));
}

bool other_packing(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool reads_packed = c.pipeline == Pipeline::preshuffle;
    return reads_packed != v.problem.packed_b &&
           refuse(out, TILEWISE_TEXT("a kernel for {} B", reads_packed ? "a packed" : "a plain"),
                  TILEWISE_TEXT("one for {} B", v.problem.packed_b ? "a packed" : "a plain"));
}

bool varies(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return v.problem.deterministic && !c.deterministic &&
           refuse(out, TILEWISE_TEXT("sums by atomics"), TILEWISE_TEXT("a deterministic kernel"));
}

// Merged groups form one product with more columns and a deeper reduction.
GemmView merged_view(const ProblemView& v, const KernelConfig& c) {
    if (!is_conv(c.op)) return v.gemm;
    if (family_of(c) == FamilyId::col2im_conv) return columns_view(v.problem);
    GemmView view = v.gemm;
    if (c.specialization == Specialization::depthwise) {
        view.n = v.problem.conv.k;  // its columns are the channels of all groups
        return view;
    }
    const std::int64_t groups = c.num_groups_to_merge;
    view.n *= groups;
    (c.op == Op::conv_bwd_weight ? view.m : view.k) *= groups;
    return view;
}

bool partial_tile(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const GemmView view = merged_view(v, c);
    struct Dimension {
        char name;
        bool padded;
        std::int64_t size;
        int tile;
    };
    for (const Dimension& d : {Dimension{'m', c.pad.m, view.m, c.tile.m}, Dimension{'n', c.pad.n, view.n, c.tile.n},
                               Dimension{'k', c.pad.k, view.k, c.tile.k}}) {
        if (!d.padded && d.size % std::max(1, d.tile) != 0) {
            return refuse(out, TILEWISE_TEXT("{}={} without padding", d.name, d.size),
                          TILEWISE_TEXT("a multiple of the tile's {}", d.tile));
        }
    }
    return false;
}

bool misaligned(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const Problem& p = v.problem;
    for (int i = 0; i < 3; ++i) {
        const int width = vector_width(c, i);
        if (width <= 1) continue;
        // A depthwise kernel moves the channels of many groups at once; others those of the groups they merge.
        const bool depthwise = c.specialization == Specialization::depthwise;
        const bool by_columns = is_weight(c.op, i) && family_of(c) == FamilyId::col2im_conv;  // of all taps
        const std::int64_t length =
            by_columns ? columns_view(p).n : contiguous_length(p, i, depthwise ? p.conv.g : c.num_groups_to_merge);
        if (length % width != 0) {
            return refuse(out, TILEWISE_TEXT("vector_{} {} along {} elements", kOperandName[i], width, length),
                          TILEWISE_TEXT("a divisor of {}", length));
        }
        if (!starts_aligned(p, c, i)) {
            return refuse(out, TILEWISE_TEXT("vector_{} of {} bytes", kOperandName[i], access_bytes(c, i)),
                          TILEWISE_TEXT("pointers (align={}) and strides that are multiples of it", p.align_bytes));
        }
    }
    return false;
}

constexpr std::int64_t kIntLimit = std::int64_t{1} << 31;

// Plans and GPU kernels of all convolutions but split_image count in 32 bits: elements, and the places that taps of padded images
// lead to. None of the rules below narrows a number before this one has been asked.
bool out_of_range(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const bool gathers = c.gather == Gather::plain || c.gather == Gather::async;
    const bool is_wide = c.split_image && gathers && c.specialization != Specialization::depthwise;
    if (!is_conv(c.op) || is_wide) return false;
    const std::int64_t largest = std::max({v.elements[0], v.elements[1], v.elements[2]});
    if (largest >= kIntLimit) {
        return refuse(out, TILEWISE_TEXT("a tensor of {} elements", largest),
                      TILEWISE_TEXT("fewer than 2^31, or split_image"));
    }
    if (!arch.is_gpu()) return false;  // its kernels count places in 64 bits
    constexpr std::int64_t kPlaceLimit = std::int64_t{1} << 30;
    const ConvShape& s = v.problem.conv;
    for (int d = 0; d < s.in.rank; ++d) {
        const std::int64_t padded = s.in[d] + s.pad_before[d] + s.pad_after[d];
        if (std::max({padded, s.stride[d], s.dilation[d]}) < kPlaceLimit) continue;
        return refuse(out,
                      TILEWISE_TEXT("{} pixels with their padding, stride {}, dilation {} in dimension {}", padded,
                                    s.stride[d], s.dilation[d], d),
                      TILEWISE_TEXT("less than 2^30 each, or split_image"));
    }
    return false;
}

// Tiles of a launch. Convolutions by patches count those of their plans.
std::int64_t tile_count(const ProblemView& v, const KernelConfig& c) {
    const Problem& p = v.problem;
    if (c.op == Op::gemm) {
        const std::int64_t rows = c.swap_ab ? p.gemm.n : p.gemm.m, columns = c.swap_ab ? p.gemm.m : p.gemm.n;
        return bounded_product({round_up(ceil_div(rows, c.tile.m), c.cluster.m),
                                round_up(ceil_div(columns, c.tile.n), c.cluster.n), p.gemm.batch, c.split_k});
    }
    if (c.specialization == Specialization::depthwise) {  // at most: of the others, outputs are more than tiles
        return c.op == Op::conv_bwd_weight ? bounded_product({p.conv.k, product(p.conv.filter), c.split_k}) : 0;
    }
    if (c.gather == Gather::halo) return 0;
    if (c.gather == Gather::columns) return column_conv_tiles(p, c);
    return c.gather == Gather::tensor ? tensor_conv_tiles(p, v.gemm, c) : gather_conv_tiles(p, v.gemm, c);
}

// Blocks count tiles and steps, and tensor copies coordinates, in 32 bits; strides of tensors that they read in 40.
bool beyond_gpu_range(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (!arch.is_gpu()) return false;
    if (std::min({c.tile.m, c.tile.n, c.tile.k, c.cluster.m, c.cluster.n}) <
        1) {  // whoever asks need not have checked it
        return refuse(out, TILEWISE_TEXT("tile {}, cluster {}x{}", print_shape(c.tile), c.cluster.m, c.cluster.n),
                      TILEWISE_TEXT("1 or more each way"));
    }
    constexpr std::int64_t kStrideLimit = std::int64_t{1} << 40;
    const Problem& p = v.problem;
    const std::int64_t tiles = tile_count(v, c), steps = ceil_div(v.gemm.k, c.tile.k);
    if (std::max(tiles, steps) >= kIntLimit) {
        return refuse(out, TILEWISE_TEXT("{} tiles of {} steps", tiles, steps),
                      TILEWISE_TEXT("fewer than {}", kIntLimit));
    }
    if (is_conv(c.op) || !has_wide_waves(c, arch)) return false;
    constexpr std::int64_t kWidestGroup = 1024;  // a tile that reaches over the edge must not pass the limit either
    const std::int64_t largest = std::max({p.gemm.m, p.gemm.n, p.gemm.k, p.gemm.batch});
    if (largest >= kIntLimit - kWidestGroup) {
        return refuse(out, TILEWISE_TEXT("an extent of {}", largest),
                      TILEWISE_TEXT("at most {}, or an mma.sync kernel", kIntLimit - kWidestGroup - 1));
    }
    for (int i = 0; i < 3; ++i) {
        const std::int64_t stride = v.longest_strides[static_cast<std::size_t>(i)] * bytes_of(operand_dtype(c, i));
        if (stride < kStrideLimit) continue;
        return refuse(out, TILEWISE_TEXT("{} with a stride of {} bytes", kOperandName[i], stride),
                      TILEWISE_TEXT("less than {}", kStrideLimit));
    }
    return false;
}

bool too_shallow(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (c.split_k <= 1) return false;
    if (family_of(c) == FamilyId::patch_wgrad || family_of(c) == FamilyId::shifted_wgrad)
        return false;  // they plan their own steps
    const std::int64_t depth = merged_view(v, c).k;
    const std::int64_t tile = std::max(1, c.tile.k);
    const std::int64_t steps = (depth + tile - 1) / tile;
    return steps < c.split_k && refuse(out, TILEWISE_TEXT("split_k {} of {} steps of k", c.split_k, steps),
                                       TILEWISE_TEXT("at most {}", steps));
}

bool beyond_vectors(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (is_conv(c.op) || !is_gemv(family_of(c))) return false;
    const std::int64_t vectors = c.swap_ab ? v.gemm.m : v.gemm.n;
    return vectors > c.tile.n && refuse(out, TILEWISE_TEXT("{}={}", c.swap_ab ? 'm' : 'n', vectors),
                                        TILEWISE_TEXT("at most {} vectors", c.tile.n));
}

bool beyond_multi_d(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (d_count(v.problem) == 0 || is_conv(c.op)) return false;
    const TileLimits& limits = arch.limits[static_cast<std::size_t>(Operator::multi_d)];
    const bool below = c.tile.m < limits.min.m || c.tile.n < limits.min.n || c.tile.k < limits.min.k;
    const bool off = c.tile.m % limits.align.m != 0 || c.tile.n % limits.align.n != 0 || c.tile.k % limits.align.k != 0;
    return (below || off) &&
           refuse(out, TILEWISE_TEXT("tile {} with D tensors", print_shape(c.tile)),
                  TILEWISE_TEXT("at least {} in multiples of {}", print_shape(limits.min), print_shape(limits.align)));
}

constexpr FitRule kFitRules[] = {
    {"fit_op", "the kernel computes this operation", other_op, true},
    {"fit_empty", "no kernel is launched for a problem with an empty dimension", is_nothing, true},
    {"fit_dtype", "the kernel has these element types", other_dtype, true},
    {"fit_dimensions", "the kernel has as many spatial dimensions", other_dimensions, true},
    {"fit_layout", "the kernel reads and writes this layout", other_layout, true},
    {"fit_math", "the kernel is at least as exact as asked", looser_math, true},
    {"fit_packed", "B is packed ahead for kernels that read it so, and for no others", other_packing, true},
    {"fit_deterministic", "the same bits were asked for every time", varies, true},
    {"fit_index_range", "32-bit offsets reach every element, and every place in a padded image", out_of_range, true},
    {"fit_specialization", "what the kernel assumes of the filter holds", not_specialised, true},
    {"fit_compile_time", "extents compiled in are the problem's", other_filter, true},
    {"fit_depthwise", "a depthwise kernel on a GPU has channels of its own for each group", beyond_depthwise, true},
    {"fit_groups", "groups are merged evenly", cannot_merge, true},
    {"fit_padding", "a dimension without padding is whole tiles", partial_tile},
    {"fit_vector", "vector accesses stay aligned and inside a row", misaligned, true},
    {"fit_im2col", "the copy engine can walk over the pixels", beyond_im2col},
    {"fit_columns", "columns of sums are one group's, and are counted in 32 bits", beyond_columns},
    {"fit_gpu_range", "tiles and coordinates of a GPU kernel fit 32 bits", beyond_gpu_range},
    {"fit_split_k", "every part of a split reduction has work", too_shallow},
    {"fit_vectors", "a kernel for vectors has place for all of them", beyond_vectors},
    {"fit_multi_d", "D tensors have limits of their own on the tile", beyond_multi_d},
};

}  // namespace

std::span<const FitRule> fit_rules() { return kFitRules; }

const FitRule* first_misfit(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    for (const FitRule& rule : kFitRules) {
        if (!rule.broken(v, c, arch, out)) continue;
        if (out) out->rule = rule.name;
        return &rule;
    }
    return nullptr;
}

bool fits_alike(const KernelConfig& a, const KernelConfig& b) {
    const auto fields = [](const KernelConfig& c) {
        return std::make_tuple(c.op, c.dtype, c.dtype_b, c.dtype_out, c.ndim, c.layout, c.math, c.deterministic,
                               c.pipeline == Pipeline::preshuffle, c.gather, c.split_image, c.specialization,
                               c.num_groups_to_merge, c.warp_tile.k > 1, c.vector_a, c.vector_b, c.vector_c, c.pad.m,
                               c.pad.n, c.pad.k);
    };
    return fields(a) == fields(b) && a.ct_filter == b.ct_filter && a.ct_stride == b.ct_stride &&
           a.ct_dilation == b.ct_dilation &&
           (family_of(a) == FamilyId::col2im_conv) == (family_of(b) == FamilyId::col2im_conv);
}

namespace {

// Those that are shared, or are not, in the order in which they are checked.
template <bool shared>
constexpr auto kRulesThat = [] {
    std::array<FitRule, static_cast<std::size_t>(std::ranges::count(kFitRules, shared, &FitRule::is_shared))> rules{};
    std::ranges::copy_if(kFitRules, rules.begin(), [](const FitRule& rule) { return rule.is_shared == shared; });
    return rules;
}();

bool breaks_any(std::span<const FitRule> rules, const ProblemView& v, const KernelConfig& c, const ArchSpec& arch) {
    return std::ranges::any_of(rules, [&](const FitRule& rule) { return rule.broken(v, c, arch, nullptr); });
}

}  // namespace

bool breaks_shared_rule(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch) {
    return breaks_any(kRulesThat<true>, v, c, arch);
}
bool breaks_own_rule(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch) {
    return breaks_any(kRulesThat<false>, v, c, arch);
}

}  // namespace tilewise
