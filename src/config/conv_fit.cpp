// SPDX-License-Identifier: MIT
#include "config/conv_fit.hpp"

#include <algorithm>

#include "base/bounded_product.hpp"
#include "config/conv_tiles.hpp"
#include "config/geometry.hpp"
#include "config/im2col.hpp"
#include "config/rule_groups.hpp"
#include "kernels/common/col2im_conv_args.hpp"

namespace tilewise {
namespace {

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

}  // namespace

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
    if (c.specialization != Specialization::depthwise || !arch.is_gpu()) return false;
    const ConvShape& s = v.problem.conv;
    constexpr std::int64_t kMostTaps = 1024;  // 2^24 / 2^14
    const std::int64_t taps = product(s.filter);
    if (c.dtype == DType::int8 && taps > kMostTaps) {
        return refuse(out, TILEWISE_TEXT("{} taps of int8", taps), TILEWISE_TEXT("at most {}", kMostTaps));
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
    // Blocks that add up in a cluster write rows of the result as they are: no pixels of one class of a stride, whole lines of weights.
    if (c.op == Op::conv_bwd_data && c.cluster_k && product(p.conv.stride) != 1) {
        return refuse(out, TILEWISE_TEXT("a stride with cluster_k"), TILEWISE_TEXT("stride 1, or no cluster_k"));
    }
    if (c.op == Op::conv_bwd_weight && c.cluster_k && p.conv.c / p.conv.g % channel_line(c) != 0) {
        return refuse(out, TILEWISE_TEXT("groups of {} channels with cluster_k", p.conv.c / p.conv.g),
                      TILEWISE_TEXT("a multiple of {}, or no cluster_k", channel_line(c)));
    }
    return false;
}

bool beyond_columns(const ProblemView& v, const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (c.gather != Gather::columns) return false;
    if (v.problem.conv.g != 1) {
        return refuse(out, TILEWISE_TEXT("{} groups", v.problem.conv.g), TILEWISE_TEXT("1, or a kernel that gathers"));
    }
    const GemmView view = columns_view(v.problem);
    const std::int64_t sums = bounded_product({view.m, view.n});
    return sums >= kMostCol2imSums && refuse(out, TILEWISE_TEXT("{} pixels by {} columns", view.m, view.n),
                                             TILEWISE_TEXT("fewer than {} sums", kMostCol2imSums));
}

}  // namespace tilewise
