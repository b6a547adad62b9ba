// SPDX-License-Identifier: MIT
#include "config/fit.hpp"

#include <algorithm>
#include <initializer_list>

#include "config/geometry.hpp"
#include "config/halo_first_plan.hpp"
#include "config/halo_fit.hpp"
#include "config/halo_weight_plan.hpp"
#include "config/im2col.hpp"
#include "config/packing.hpp"
#include "config/rule_groups.hpp"
#include "config/tap_weight_plan.hpp"
#include "kernels/common/stream_slots.hpp"

namespace tilewise {

bool starts_aligned(const Problem& p, const KernelConfig& c, int operand) {
    const int width = vector_width(c, operand);
    if (width <= 1) return true;
    if (p.align_bytes % access_bytes(c, operand) != 0) return false;
    if (p.op != Op::gemm) return true;  // packed: rows follow each other, and their length is checked
    const bool rows = leading_stride(p, operand) % width == 0;
    return rows && (p.gemm.batch == 1 || batch_stride(p, operand) % width == 0);
}

namespace {

bool other_op(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.op != v.problem.op &&
           refuse(out, TILEWISE_TEXT("a kernel for {}", name_of(c.op)), TILEWISE_TEXT("{}", name_of(v.problem.op)));
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

bool not_specialised(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (c.specialization == Specialization::none) return false;
    const ConvShape& s = v.problem.conv;
    const auto all = [](const Extents& extents, std::int64_t value) {
        return std::all_of(extents.size.begin(), extents.size.begin() + extents.rank,
                           [&](std::int64_t extent) { return extent == value; });
    };
    const bool unpadded = all(s.pad_before, 0) && all(s.pad_after, 0);
    bool fits = true;
    switch (c.specialization) {
        case Specialization::none: break;
        case Specialization::filter_1x1: fits = all(s.filter, 1) && unpadded; break;
        case Specialization::filter_1x1_stride1: fits = all(s.filter, 1) && all(s.stride, 1) && unpadded; break;
        case Specialization::filter_3x3: fits = all(s.filter, 3); break;
        case Specialization::depthwise: fits = is_depthwise(v.problem); break;
    }
    return !fits &&
           refuse(out, TILEWISE_TEXT("specialization {}", name_of(c.specialization)),
                  TILEWISE_TEXT("none, or one that fits g={}, c={} and this filter, stride and pad", s.g, s.c));
}

bool other_filter(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (!is_conv(c.op)) return false;
    const ConvShape& s = v.problem.conv;
    const auto agrees = [](const Extents& compiled, const Extents& asked) {
        return compiled.rank == 0 || compiled == asked;
    };
    const bool fits =
        agrees(c.ct_filter, s.filter) && agrees(c.ct_stride, s.stride) && agrees(c.ct_dilation, s.dilation);
    return !fits && refuse(out, TILEWISE_TEXT("another compile-time filter, stride or dilation"),
                           TILEWISE_TEXT("the problem's, or none"));
}

// On a GPU only the depthwise kernel that knows nothing in advance takes several output channels per group, one at a time. All
// of them add up integers in fp32, which has those of so many taps.
bool beyond_depthwise(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (c.specialization != Specialization::depthwise || arch.backend != "cuda") return false;
    const ConvShape& s = v.problem.conv;
    constexpr std::int64_t kMostTaps = 1024;  // 2^24 / 2^14
    const std::int64_t taps = product(s.filter);
    if (c.dtype == DType::int8 && taps > kMostTaps) {
        return refuse(out, TILEWISE_TEXT("{} taps of int8", taps), TILEWISE_TEXT("at most {}", kMostTaps));
    }
    const Problem& p = v.problem;
    const bool plain = p.epilogue.empty() && p.d_ops.empty() && p.scale == Scale::none && !p.beta;
    if (c.warp_tile.k > 1 && c.op != Op::conv_bwd_weight && !plain) {
        return refuse(out, TILEWISE_TEXT("a depthwise kernel on matrix units with an epilogue, scales or beta"),
                      TILEWISE_TEXT("none of these, or a warp tile of depth 1"));
    }
    constexpr double kMostImageBytes = 2147483648.0;
    const double channels = static_cast<double>(s.c) * static_cast<double>(bytes_of(c.dtype));
    const double image =
        std::max(static_cast<double>(product(s.in)), static_cast<double>(product(output_size(s)))) * channels;
    if (c.warp_tile.k > 1 && image >= kMostImageBytes) {
        return refuse(out, TILEWISE_TEXT("images of {} bytes on matrix units", image),
                      TILEWISE_TEXT("less than {}, or a warp tile of depth 1", kMostImageBytes));
    }
    for (int d = 0; d < s.dilation.rank && c.ct_filter.rank > 0 && c.ct_dilation.rank == 0; ++d) {
        if (s.dilation[d] == 1) continue;
        return refuse(out, TILEWISE_TEXT("a compile-time filter that says nothing of its dilation"),
                      TILEWISE_TEXT("one that says {}", s.dilation[d]));
    }
    const bool takes_one = c.ct_filter.rank > 0 || c.vector_a > 1;
    return takes_one && s.k != s.g &&
           refuse(out, TILEWISE_TEXT("{} output channels per group", s.k / std::max<std::int64_t>(1, s.g)),
                  TILEWISE_TEXT("1, or a kernel without compile-time filter and vectors"));
}

bool cannot_merge(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return is_conv(c.op) && v.problem.conv.g % std::max(1, c.num_groups_to_merge) != 0 &&
           refuse(out, TILEWISE_TEXT("num_groups_to_merge {}", c.num_groups_to_merge),
                  TILEWISE_TEXT("a divisor of g={}", v.problem.conv.g));
}

// Merged groups form one product with more columns and a deeper reduction.
GemmView merged_view(const ProblemView& v, const KernelConfig& c) {
    GemmView view = v.gemm;
    if (c.specialization == Specialization::depthwise) {
        view.n = v.problem.conv.k;  // its columns are the channels of all groups
        return view;
    }
    const std::int64_t groups = is_conv(c.op) ? c.num_groups_to_merge : 1;
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
        const std::int64_t length = contiguous_length(p, i, depthwise ? p.conv.g : c.num_groups_to_merge);
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

bool out_of_range(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr std::int64_t kIndexLimit = std::int64_t{1} << 31;
    const std::int64_t largest = std::max({v.elements[0], v.elements[1], v.elements[2]});
    return is_conv(c.op) && !c.split_image && largest >= kIndexLimit &&
           refuse(out, TILEWISE_TEXT("a tensor of {} elements", largest),
                  TILEWISE_TEXT("fewer than 2^31, or split_image"));
}

// Blocks count tiles, and tensor copies coordinates, in 32 bits; strides of tensors that they read in 40.
bool beyond_gpu_range(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (arch.backend == "cpu" || c.op != Op::gemm) return false;
    constexpr std::int64_t kLimit = std::int64_t{1} << 31, kStrideLimit = std::int64_t{1} << 40;
    const Problem& p = v.problem;
    const auto tiles = [](std::int64_t size, int tile, int cluster) {
        const std::int64_t unit = std::int64_t{std::max(1, tile)} * std::max(1, cluster);
        return (size + unit - 1) / unit * std::max(1, cluster);
    };
    const std::int64_t rows = c.swap_ab ? p.gemm.n : p.gemm.m, columns = c.swap_ab ? p.gemm.m : p.gemm.n;
    double blocks = static_cast<double>(tiles(rows, c.tile.m, c.cluster.m));
    blocks *=
        static_cast<double>(tiles(columns, c.tile.n, c.cluster.n)) * static_cast<double>(p.gemm.batch) * c.split_k;
    if (blocks >= static_cast<double>(kLimit)) {
        return refuse(out, TILEWISE_TEXT("{:.0f} tiles", blocks), TILEWISE_TEXT("fewer than {}", kLimit));
    }
    if (!has_wide_waves(c, arch)) return false;
    constexpr std::int64_t kWidestGroup = 1024;  // a tile that reaches over the edge must not pass the limit either
    const std::int64_t largest = std::max({p.gemm.m, p.gemm.n, p.gemm.k, p.gemm.batch});
    if (largest >= kLimit - kWidestGroup) {
        return refuse(out, TILEWISE_TEXT("an extent of {}", largest),
                      TILEWISE_TEXT("at most {}, or an mma.sync kernel", kLimit - kWidestGroup - 1));
    }
    for (int i = 0; i < 3; ++i) {
        const std::int64_t size = bytes_of(operand_dtype(c, i));
        const std::int64_t matrix = v.elements[static_cast<std::size_t>(i)] * size;  // at least any stride in use
        const std::int64_t stride = std::max({leading_stride(p, i) * size, batch_stride(p, i) * size, matrix});
        if (stride < kStrideLimit) continue;
        return refuse(out, TILEWISE_TEXT("{} with a stride of {} bytes", kOperandName[i], stride),
                      TILEWISE_TEXT("less than {}", kStrideLimit));
    }
    return false;
}

// Taps that are joined share their pixels: one shifts the lines of another.
bool cannot_join(const Problem& p, const KernelConfig& c, Rejected* out) {
    const int joined = joined_taps(c), last = p.conv.in.rank - 1;
    if (joined == 1) return false;
    const std::int64_t filter = p.conv.filter[last], shift = (joined - 1) * p.conv.dilation[last];
    if (filter % joined != 0 || shift > kTapRoomLines) {
        return refuse(out, TILEWISE_TEXT("{} taps with dilation {}", filter, p.conv.dilation[last]),
                      TILEWISE_TEXT("a multiple of {} taps that shift lines by {} at most", joined, kTapRoomLines));
    }
    for (int d = c.op == Op::conv_bwd_data ? 0 : last; d <= last; ++d) {
        if (p.conv.stride[d] != 1) {
            return refuse(out, TILEWISE_TEXT("stride {} in dimension {}", p.conv.stride[d], d),
                          TILEWISE_TEXT("1, or stages of one tap"));
        }
    }
    return false;
}

// The copy engine counts in few bits how far a walk over pixels begins and ends beyond the image, and how far taps move it.
bool beyond_im2col(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (!walks_taps(c)) return false;
    struct Limits {
        std::int64_t corner, farthest;
    };
    constexpr Limits kLimits[] = {{1 << 15, 65535}, {1 << 7, 255}, {1 << 4, 31}};  // by dimensions
    constexpr std::int64_t kMostStep = 8;
    const Problem& p = v.problem;
    const Limits& most = kLimits[p.conv.in.rank - 1];
    for (int d = 0; d < p.conv.in.rank; ++d) {
        const Im2colLine line = im2col_line(p, c, d);
        for (const std::int64_t corner : {line.lower, line.upper()}) {
            if (corner >= -most.corner && corner < most.corner) continue;
            return refuse(out, TILEWISE_TEXT("a walk that begins or ends {} pixels beyond dimension {}", corner, d),
                          TILEWISE_TEXT("{} to {}, or a kernel that gathers", -most.corner, most.corner - 1));
        }
        if (line.farthest > most.farthest) {
            return refuse(out, TILEWISE_TEXT("taps {} pixels apart in dimension {}", line.farthest, d),
                          TILEWISE_TEXT("at most {}, or a kernel that gathers", most.farthest));
        }
        if (std::max(line.step, line.classes) > kMostStep) {
            return refuse(out, TILEWISE_TEXT("stride {} in dimension {}", p.conv.stride[d], d),
                          TILEWISE_TEXT("at most {}, or a kernel that gathers", kMostStep));
        }
    }
    if (cannot_join(p, c, out)) return true;
    // Blocks that add up in a cluster write rows of weights as they are.
    if (c.op == Op::conv_bwd_weight && c.cluster_k && p.conv.c / p.conv.g % channel_line(c) != 0) {
        return refuse(out, TILEWISE_TEXT("groups of {} channels with cluster_k", p.conv.c / p.conv.g),
                      TILEWISE_TEXT("a multiple of {}, or no cluster_k", channel_line(c)));
    }
    return false;
}

bool too_shallow(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (is_halo_weight(c) || is_tap_weight(c)) return false;  // they plan their own steps
    const std::int64_t depth = merged_view(v, c).k;
    const std::int64_t tile = std::max(1, c.tile.k);
    const std::int64_t steps = (depth + tile - 1) / tile;
    return c.split_k > 1 && steps < c.split_k &&
           refuse(out, TILEWISE_TEXT("split_k {} of {} steps of k", c.split_k, steps),
                  TILEWISE_TEXT("at most {}", steps));
}

bool beyond_patches(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (is_halo_first(c)) return !halo_first_plan(v.problem, c, arch, out);
    if (is_tap_weight(c)) return !tap_weight_plan(v.problem, c, arch, out);
    return is_halo_weight(c) && !halo_weight_plan(v.problem, c, arch, out);
}

bool beyond_vectors(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (!multiplies_vectors(c)) return false;
    const std::int64_t vectors = c.swap_ab ? v.gemm.m : v.gemm.n;
    return vectors > c.tile.n && refuse(out, TILEWISE_TEXT("{}={}", c.swap_ab ? 'm' : 'n', vectors),
                                        TILEWISE_TEXT("at most {} vectors", c.tile.n));
}

bool beyond_multi_d(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (v.problem.d_ops.empty() || c.op != Op::gemm) return false;
    const TileLimits& limits = arch.limits[static_cast<std::size_t>(Operator::multi_d)];
    const bool below = c.tile.m < limits.min.m || c.tile.n < limits.min.n || c.tile.k < limits.min.k;
    const bool off = c.tile.m % limits.align.m != 0 || c.tile.n % limits.align.n != 0 || c.tile.k % limits.align.k != 0;
    return (below || off) &&
           refuse(out, TILEWISE_TEXT("tile {} with D tensors", print_shape(c.tile)),
                  TILEWISE_TEXT("at least {} in multiples of {}", print_shape(limits.min), print_shape(limits.align)));
}

bool too_little_workspace(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const std::int64_t limit = v.problem.workspace_bytes;
    return limit != kNoWorkspaceLimit && workspace_bytes(v, c, arch) > limit &&
           refuse(out, TILEWISE_TEXT("{} bytes of workspace", workspace_bytes(v, c, arch)),
                  TILEWISE_TEXT("at most {}", limit));
}

constexpr FitRule kFitRules[] = {
    {"fit_op", "the kernel computes this operation", other_op},
    {"fit_dtype", "the kernel has these element types", other_dtype},
    {"fit_dimensions", "the kernel has as many spatial dimensions", other_dimensions},
    {"fit_layout", "the kernel reads and writes this layout", other_layout},
    {"fit_math", "the kernel is at least as exact as asked", looser_math},
    {"fit_packed", "B is packed ahead for kernels that read it so, and for no others", other_packing},
    {"fit_deterministic", "the same bits were asked for every time", varies},
    {"fit_specialization", "what the kernel assumes of the filter holds", not_specialised},
    {"fit_compile_time", "extents compiled in are the problem's", other_filter},
    {"fit_depthwise", "a depthwise kernel on a GPU has channels of its own for each group", beyond_depthwise},
    {"fit_groups", "groups are merged evenly", cannot_merge},
    {"fit_padding", "a dimension without padding is whole tiles", partial_tile},
    {"fit_vector", "vector accesses stay aligned and inside a row", misaligned},
    {"fit_index_range", "32-bit offsets reach every element", out_of_range},
    {"fit_gpu_range", "tiles and coordinates of a GPU kernel fit 32 bits", beyond_gpu_range},
    {"fit_im2col", "the copy engine can walk over the pixels", beyond_im2col},
    {"fit_split_k", "every part of a split reduction has work", too_shallow},
    {"fit_halo_weight", "patches of pixels fit shared memory, and channels whole copies", beyond_patches},
    {"fit_vectors", "a kernel for vectors has place for all of them", beyond_vectors},
    {"fit_multi_d", "D tensors have limits of their own on the tile", beyond_multi_d},
    {"fit_halo", "a patch of pixels and the weights of its groups fit a block", beyond_halo},
    {"fit_workspace", "scratch memory stays within the problem's limit", too_little_workspace},
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

namespace {

// More than any memory; sums of a few of these do not overflow.
constexpr std::int64_t kMostWorkspaceBytes = std::int64_t{1} << 60;

std::int64_t bounded_product(std::initializer_list<std::int64_t> factors) {
    std::int64_t product = 1;
    for (const std::int64_t factor : factors) {
        if (__builtin_mul_overflow(product, factor, &product) || product > kMostWorkspaceBytes)
            return kMostWorkspaceBytes;
    }
    return product;
}

}  // namespace

bool sums_in_workspace(const KernelConfig& c) {
    // The sums of backward weight over several chunks of images have to wait for each other too.
    return (c.split_k > 1 && !c.cluster_k) || c.two_stage || (c.split_image && c.op == Op::conv_bwd_weight);
}

std::int64_t workspace_bytes(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch) {
    constexpr std::int64_t kPartialBytes = 4;  // partial sums are fp32 or int32
    const std::int64_t output = v.elements[2] * kPartialBytes;
    std::int64_t bytes = 0;
    std::int64_t parts = c.deterministic ? c.split_k : 1;
    if (is_halo_weight(c)) {
        const auto plan = halo_weight_plan(v.problem, c, arch);
        parts = plan ? plan->parts / halo_weight_cluster_parts(c) : 1;
    }
    if (is_tap_weight(c)) {
        const auto plan = tap_weight_plan(v.problem, c, arch);
        parts = plan ? plan->parts / halo_weight_cluster_parts(c) : 1;
    }
    if (sums_in_workspace(c)) bytes += bounded_product({output, parts});
    if (c.stream_k != StreamK::off) {
        const std::int64_t slot = bounded_product({c.tile.m, c.tile.n, kPartialBytes});
        bytes += bounded_product({arch.units, c.blocks_per_unit, slot + kFlagBytes});
    }
    if (c.explicit_gemm) {
        // The im2col matrix: every reduction element of every row (backward weight: of every column).
        const std::int64_t rows = c.op == Op::conv_bwd_weight ? v.gemm.n : v.gemm.m;
        bytes = whole_packs(std::min(bytes, kMostWorkspaceBytes)) +
                bounded_product({v.gemm.batch, rows, v.gemm.k, bytes_of(c.dtype)});
    }
    for (int i = 0; i < 2; ++i) {
        if (!packs_operand(c, arch, i)) continue;
        const PackedMatrices packed = packed_matrices(v.problem, i);
        bytes = whole_packs(std::min(bytes, kMostWorkspaceBytes)) +
                bounded_product({packed.line_bytes(), packed.lines, packed.matrices});
    }
    return std::min(bytes, kMostWorkspaceBytes);
}

}  // namespace tilewise
