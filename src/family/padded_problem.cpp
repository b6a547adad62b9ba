// SPDX-License-Identifier: MIT
#include "family/padded_problem.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "config/geometry.hpp"
#include "config/workspace.hpp"
#include "family/may_run.hpp"

namespace tilewise {
namespace {

// A size that may grow, and what it must become a multiple of.
struct Size {
    std::int64_t value = 1;
    std::int64_t unit = 1;

    // value * factor is to be a multiple of `multiple`.
    void need(std::int64_t multiple, std::int64_t factor = 1) {
        unit = std::lcm(unit, multiple / std::gcd(multiple, factor));
    }
    std::int64_t padded() const { return (value + unit - 1) / unit * unit; }
};

// The rule on padding wants m, n and k of the product to be multiples of these.
struct Tiles {
    explicit Tiles(const KernelConfig& c)
        : m(c.pad.m ? 1 : std::max(1, c.tile.m)),
          n(c.pad.n ? 1 : std::max(1, c.tile.n)),
          k(c.pad.k ? 1 : std::max(1, c.tile.k)) {}
    std::int64_t m, n, k;
};

void pad_gemm(Problem& p, const KernelConfig& config) {
    GemmShape& s = p.gemm;
    const Tiles tiles(config);
    Size m{s.m, tiles.m}, n{s.n, tiles.n}, k{s.k, tiles.k};
    (is_row(p.layout, 0) ? k : m).need(std::max(1, config.vector_a));
    (is_row(p.layout, 1) ? n : k).need(std::max(1, config.vector_b));
    (is_row(p.layout, 2) ? n : m).need(std::max(1, config.vector_c));
    s.m = m.padded(), s.n = n.padded(), s.k = k.padded();
}

// The sizes of a convolution that zeros can be added to. Those of the image cannot: they decide which pixels meet.
struct ConvSizes {
    Size images, groups, c, k;  // channels per group
};

// A depthwise kernel takes the channels of all groups side by side, so there are more groups; its groups stay narrow.
void need_depthwise(ConvSizes& size, const Problem& p, const KernelConfig& config) {
    const Tiles tiles(config);
    size.groups.need(tiles.n, size.k.value);
    for (int i = 0; i < 3 && is_channels_last(p.layout); ++i) {
        if (is_weight(p.op, i)) continue;
        size.groups.need(std::max(1, vector_width(config, i)), is_input(p.op, i) ? size.c.value : size.k.value);
    }
}

void need_grouped(ConvSizes& size, const Problem& p, const KernelConfig& config) {
    const Tiles tiles(config);
    const std::int64_t merged = std::max(1, config.num_groups_to_merge), taps = product(p.conv.filter);
    size.groups.need(merged);
    switch (p.op) {
        case Op::gemm: break;
        case Op::conv_fwd: size.k.need(tiles.n, merged), size.c.need(tiles.k, merged * taps); break;
        case Op::conv_bwd_data: size.c.need(tiles.n, merged), size.k.need(tiles.k, merged * taps); break;
        case Op::conv_bwd_weight: size.k.need(tiles.m, merged), size.c.need(tiles.n, merged * taps); break;
    }
    for (int i = 0; i < 3; ++i) {
        const std::int64_t width = std::max(1, vector_width(config, i));
        if (is_weight(p.op, i)) {
            size.c.need(width, config.gather == Gather::columns ? taps : 1);  // columns lie side by side for all taps
        } else if (is_channels_last(p.layout)) {
            (is_input(p.op, i) ? size.c : size.k).need(width, merged);
        }
    }
}

void pad_conv(Problem& p, const KernelConfig& config) {
    ConvShape& s = p.conv;
    ConvSizes size{{s.n}, {s.g}, {s.c / s.g}, {s.k / s.g}};
    const Tiles tiles(config);
    const std::int64_t pixels = product(p.op == Op::conv_bwd_data ? s.in : output_size(s));
    size.images.need(p.op == Op::conv_bwd_weight ? tiles.k : tiles.m, pixels);
    if (config.specialization == Specialization::depthwise) {
        need_depthwise(size, p, config);
    } else {
        need_grouped(size, p, config);
    }
    s.n = size.images.padded(), s.g = size.groups.padded();
    s.c = s.g * size.c.padded(), s.k = s.g * size.k.padded();
}

void resize(Problem& p, const KernelConfig& config) { p.op == Op::gemm ? pad_gemm(p, config) : pad_conv(p, config); }

// The sizes that an operand has of its own.
std::array<std::int64_t, 3> extents_of(const Problem& p, int operand) {
    if (p.op == Op::gemm) {
        const GemmShape& s = p.gemm;
        return operand == 0   ? std::array{s.m, s.k, std::int64_t{0}}
               : operand == 1 ? std::array{s.k, s.n, std::int64_t{0}}
                              : std::array{s.m, s.n, std::int64_t{0}};
    }
    const ConvShape& s = p.conv;
    if (is_weight(p.op, operand)) return {s.g, s.k, s.c};
    return {s.n, s.g, is_input(p.op, operand) ? s.c : s.k};
}

// An operand that keeps its sizes and is aligned stays where it is; the others are written anew, without gaps.
std::array<bool, 3> settle_copies(const Problem& given, const KernelConfig& config, Problem& padded) {
    std::array<bool, 3> copied{};
    for (int i = 0; i < 3; ++i) {
        const auto at = static_cast<std::size_t>(i);
        copied[at] = extents_of(given, i) != extents_of(padded, i) || !starts_aligned(given, config, i);
        if (!copied[at]) continue;
        padded.gemm.leading[at] = kPacked;
        if (padded.gemm.batch_stride[at] != 0) padded.gemm.batch_stride[at] = kPacked;
        padded.align_bytes = std::max(padded.align_bytes, access_bytes(config, i));
    }
    return copied;
}

std::string sizes_text(const Problem& given, const Problem& padded) {
    std::string text;
    const auto add = [&](std::string_view name, std::int64_t from, std::int64_t to) {
        if (from != to) text += fmt::format("{}{} from {} to {}", text.empty() ? "" : ", ", name, from, to);
    };
    add("m", given.gemm.m, padded.gemm.m);
    add("n", given.gemm.n, padded.gemm.n);
    add("k", given.gemm.k, padded.gemm.k);
    add("n", given.conv.n, padded.conv.n);
    add("g", given.conv.g, padded.conv.g);
    add("c", given.conv.c, padded.conv.c);
    add("k", given.conv.k, padded.conv.k);
    return text.empty() ? "no size, but rows and pointers are aligned" : text;
}

Note padding_note(const Problem& given, const PaddedProblem& to, const Rejected& why) {
    constexpr std::string_view kNames[] = {"a", "b", "c"};
    std::string operands;
    for (std::size_t i = 0; i < to.copied.size(); ++i) {
        if (to.copied[i]) operands += fmt::format("{}{}", operands.empty() ? "" : ", ", kNames[i]);
    }
    return {
        "padding", ErrorCode::unsupported,
        fmt::format("the kernel does not take the problem as it is (rule {}: have {}; need {}), so it is padded: {}; "
                    "every run copies {} through {} bytes of workspace; tilewise select lists kernels that need none",
                    why.rule, why.have, why.need, sizes_text(given, to.problem), operands, to.tensors.bytes)};
}

// The workspace that the kernel takes for the padded problem, copies included; nothing where it does not run even that.
std::optional<std::int64_t> needed_bytes(const PaddedProblem& padded, const KernelConfig& config,
                                         const ArchSpec& arch) {
    const ProblemView view(padded.problem);
    std::optional<LaunchPlan> plan;
    if (!may_run(view, config, arch, nullptr, &plan)) return std::nullopt;
    return padded.tensors.bytes + workspace_bytes(view, config, arch, plan ? plan->planned_parts() : 0);
}

// The problem with the sizes that the kernel needs.
std::optional<PaddedProblem> pad(const Problem& given, const KernelConfig& config, const ArchSpec& arch,
                                 const Problem* fitting, Rejected* why) {
    if (given.packed_b) return std::nullopt;  // it has the form of the sizes that it was packed for
    PaddedProblem result{given, {}, {}, {}};
    Problem& padded = result.problem;
    resize(padded, config);
    result.copied = settle_copies(given, config, padded);
    if (check_problem(padded)) return std::nullopt;
    result.tensors = padded_tensors(given, padded, result.copied);
    padded.workspace_bytes = kNoWorkspaceLimit;
    const std::int64_t limit = given.workspace_bytes;
    const bool fits = fitting && fitting->gemm == padded.gemm && fitting->conv == padded.conv;
    if (fits && limit == kNoWorkspaceLimit) return result;
    const auto needed = needed_bytes(result, config, arch);
    if (!needed) return std::nullopt;
    if (limit != kNoWorkspaceLimit && *needed > limit) {
        if (why) {
            *why = {"fit_workspace", fmt::format("{} bytes of workspace, with copies for padding", *needed),
                    fmt::format("at most {}", limit)};
        }
        return std::nullopt;
    }
    return result;
}

}  // namespace

std::optional<Problem> padded_sizes(const Problem& given, const KernelConfig& config) {
    Problem padded = given;
    resize(padded, config);
    if (check_problem(padded)) return std::nullopt;
    return padded;
}

PaddedProblem with_sizes_of(const Problem& given, const Problem& padded) {
    PaddedProblem result{padded, {}, {}, {}};
    for (int i = 0; i < 3; ++i) {
        result.copied[static_cast<std::size_t>(i)] = extents_of(given, i) != extents_of(padded, i);
    }
    result.tensors = padded_tensors(given, padded, result.copied);
    return result;
}

std::optional<Problem> with_padded_channels(const Problem& given) {
    constexpr std::int64_t kChunkBytes = 16;
    if (given.op == Op::gemm || !is_channels_last(given.layout)) return std::nullopt;
    const std::int64_t unit = kChunkBytes / std::min(bytes_of(given.dtype_a), bytes_of(given.dtype_b));
    Problem whole = given;
    ConvShape& s = whole.conv;
    Size groups{s.g}, c{s.c / s.g}, k{s.k / s.g};
    if (s.g > 1 && c.value == 1) {  // a depthwise kernel has the channels of all groups side by side
        groups.need(unit);
    } else {
        c.need(unit), k.need(unit);
    }
    s.g = groups.padded(), s.c = s.g * c.padded(), s.k = s.g * k.padded();
    if (s == given.conv || check_problem(whole)) return std::nullopt;
    return whole;
}

bool is_about_sizes(std::string_view rule) {
    return rule == "fit_groups" || rule == "fit_padding" || rule == "fit_vector";
}

std::optional<PaddedProblem> padded_problem(const Problem& given, const KernelConfig& config, const ArchSpec& arch,
                                            Rejected* why, const Problem* fitting) {
    Rejected broken;
    const bool runs = may_run(ProblemView(given), config, arch, &broken);
    if (why) *why = broken;
    if (runs || !is_about_sizes(broken.rule)) return std::nullopt;
    auto result = pad(given, config, arch, fitting, why);
    if (result) result->note = padding_note(given, *result, broken);
    return result;
}

std::optional<PaddedProblem> padded_silently(const Problem& given, const KernelConfig& config, const ArchSpec& arch,
                                             const Problem* fitting) {
    const FitRule* broken = first_misfit(ProblemView(given), config, arch);
    if (!broken || !is_about_sizes(broken->name)) return std::nullopt;
    return pad(given, config, arch, fitting, nullptr);
}

}  // namespace tilewise
