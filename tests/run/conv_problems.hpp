// SPDX-License-Identifier: MIT
// Random convolutions that a given kernel may run: its types, dimensions and whatever it has compiled in, all else being
// odd: padding larger than the input, stride larger than the filter, outputs of one pixel, groups with unequal c and k.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/random.hpp"
#include "config/im2col.hpp"
#include "family/may_run.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {

// The multiply-adds of the reference, twice: backward data visits taps that meet no output, too.
inline double reference_flops(const Problem& p) {
    const GemmView view = gemm_view(p);
    return 2.0 * static_cast<double>(view.m) * static_cast<double>(view.n) * static_cast<double>(view.k) *
           static_cast<double>(view.batch);
}

struct WorkRange {
    double least, most;
};
inline constexpr WorkRange kSmallConv = {0, 8e5};
// Enough for several threads to be used; see src/run/partition.cpp.
inline constexpr WorkRange kThreadedConv = {4e6, 1.2e7};

inline void randomize_window(Random& random, ConvShape& s, int i, std::int64_t largest) {
    std::int64_t &in = s.in[i], &before = s.pad_before[i], &after = s.pad_after[i], &filter = s.filter[i];
    in = random.between(1, largest);
    s.stride[i] = random.between(1, 3);
    s.dilation[i] = random.chance(60) ? 1 : random.between(2, 3);
    before = random.between(0, 3);
    after = random.chance(50) ? before : random.between(0, 3);
    const auto kind = random.between(0, 9);
    if (kind == 0) {  // padding larger than the input
        in = random.between(1, 3);
        before = in + random.between(1, 2);
        after = random.chance(50) ? before : in + random.between(0, 3);
    }
    const std::int64_t fitting = (in + before + after - 1) / s.dilation[i] + 1;
    filter = random.between(1, std::min<std::int64_t>(random.chance(80) ? 4 : 7, fitting));
    if (kind == 1) {  // stride larger than the filter
        s.dilation[i] = 1;
        filter = std::min<std::int64_t>(filter, 2);
        s.stride[i] = filter + random.between(1, 3);
    }
    if (kind == 2) {  // one pixel: the filter reaches over all of the padded input, or the stride beyond it
        if (random.chance(30)) {
            s.stride[i] = in + before + after + random.between(0, 1000);
        } else {
            const std::int64_t reach = (filter - 1) * s.dilation[i] + 1;
            before = random.between(0, reach - 1);
            after = random.between(0, reach - 1 - before);
            in = reach - before - after;
        }
    }
    if (kind == 3) stretch_window(random, s, i);
}

inline constexpr std::int64_t kLineChannels = 64;  // of merged groups together, which some kernels ask for

// Kernels for first layers read or write x one element at a time, and take few channels of it.
inline bool has_few_channels_of_x(const KernelConfig& config) {
    const int vector = config.op == Op::conv_fwd        ? config.vector_a
                       : config.op == Op::conv_bwd_data ? config.vector_c
                                                        : config.vector_b;
    return config.gather == Gather::halo && config.num_groups_to_merge == 1 && vector == 1;
}

// Kernels that leave columns take any number of input channels, and whole accesses of the others; parts of k have work.
inline void randomize_columns(Random& random, ConvShape& s, const KernelConfig& config) {
    const std::int64_t least = std::int64_t{config.split_k - 1} * config.tile.k;
    s.g = 1;
    s.c = random.between(1, random.chance(70) ? 9 : 40);
    s.k = (least + random.between(1, 80) + config.vector_a - 1) / config.vector_a * config.vector_a;
}

inline void randomize_channels(Random& random, ConvShape& s, const KernelConfig& config) {
    if (config.gather == Gather::columns) return randomize_columns(random, s, config);
    const auto channels = [&] { return random.between(1, random.chance(50) ? 8 : random.chance(70) ? 70 : 150); };
    if (config.specialization == Specialization::depthwise || random.chance(10)) {
        s.g = random.between(2, random.chance(50) ? 20 : 80);
        s.g = (s.g + config.num_groups_to_merge - 1) / config.num_groups_to_merge * config.num_groups_to_merge;
        s.c = s.g;
        s.k = s.g * (random.chance(60) ? 1 : random.between(2, 3));
        return;
    }
    if (config.num_groups_to_merge > 1) {
        s.g = config.num_groups_to_merge * random.between(1, 4);
        if (random.chance(20)) {
            s.c = s.k = s.g / config.num_groups_to_merge * kLineChannels;
            return;
        }
        s.c = s.g * random.between(1, random.chance(80) ? 9 : 30);
        s.k = s.g * random.between(1, random.chance(80) ? 9 : 30);
        return;
    }
    if (has_few_channels_of_x(config)) {
        s.g = 1;
        s.c = random.between(1, 4);
        s.k = std::max({config.vector_a, config.vector_b, config.vector_c}) * random.between(1, 9);
        return;
    }
    // Kernels that move several elements at once take channels of whole accesses only.
    const std::int64_t wide = std::max({config.vector_a, config.vector_b, config.vector_c});
    const auto whole = [&](std::int64_t count) { return (count + wide - 1) / wide * wide; };
    s.g = random.chance(50) ? 1 : random.between(2, 6);
    s.c = s.g * whole(channels());
    s.k = s.g * whole(channels());
}

// Makes true what the kernel takes for granted of the filter.
inline void impose_filter(ConvShape& s, const KernelConfig& config) {
    const bool pointwise = config.specialization == Specialization::filter_1x1 ||
                           config.specialization == Specialization::filter_1x1_stride1;
    for (int i = 0; i < s.in.rank; ++i) {
        if (pointwise) s.filter[i] = 1, s.pad_before[i] = s.pad_after[i] = 0;
        if (config.specialization == Specialization::filter_1x1_stride1) s.stride[i] = 1;
        if (config.specialization == Specialization::filter_3x3) s.filter[i] = 3;
        if (config.ct_filter.rank > 0) s.filter[i] = config.ct_filter[i];
        if (config.ct_stride.rank > 0) s.stride[i] = config.ct_stride[i];
        if (config.ct_dilation.rank > 0) s.dilation[i] = config.ct_dilation[i];
        const std::int64_t reach = (s.filter[i] - 1) * s.dilation[i] + 1;
        s.in[i] = std::max({s.in[i], std::int64_t{1}, reach - s.pad_before[i] - s.pad_after[i]});
    }
}

// Few channels and so many output pixels that every part of a split reduction has work.
inline void deepen_pixels(Random& random, ConvShape& s, const KernelConfig& config) {
    const double wanted = static_cast<double>((config.split_k - 1) * config.tile.k + random.between(1, config.tile.k));
    s.n = random.between(1, 3);
    s.g = random.chance(70) ? 1 : 2;
    const std::int64_t wide = std::max({config.vector_a, config.vector_b, config.vector_c});
    s.c = s.g * wide * random.between(1, wide > 1 ? 2 : 6);
    s.k = s.g * wide * random.between(1, wide > 1 ? 2 : 6);
    if (config.specialization == Specialization::depthwise) s.g = s.c = s.k = wide * random.between(1, 4);
    if (config.num_groups_to_merge > 1) {
        s.g = config.num_groups_to_merge;
        s.c = s.g * (random.chance(50) ? 4 : 8), s.k = s.g * (random.chance(50) ? 4 : 8);
        if (random.chance(50)) s.c = s.k = kLineChannels;
    }
    if (config.cluster_k && config.gather == Gather::tensor) s.c = s.g * channel_line(config);
    const auto side = static_cast<std::int64_t>(
        std::ceil(std::pow(wanted / static_cast<double>(s.n), 1.0 / static_cast<double>(s.in.rank))));
    for (int i = 0; i < s.in.rank; ++i) {
        s.filter[i] = random.between(1, 3);
        s.dilation[i] = random.between(1, 2);
        s.stride[i] = random.chance(70) ? 1 : 2;
        s.pad_before[i] = s.pad_after[i] = random.between(0, 1);
        s.in[i] = side * s.stride[i] + (s.filter[i] - 1) * s.dilation[i];
    }
}

// Kernels that know their filter: outputs that lie wholly in the padding, lines of several tiles, and many small images at a time.
inline void stretch_depthwise(Random& random, ConvShape& s, const KernelConfig& config) {
    if (config.specialization != Specialization::depthwise || config.ct_filter.rank == 0) return;
    for (int i = 0; i < s.in.rank; ++i) {
        const std::int64_t reach = (s.filter[i] - 1) * s.dilation[i] + 1;
        if (random.chance(25)) s.pad_before[i] = reach + random.between(0, 2);
        if (random.chance(25)) s.pad_after[i] = reach + random.between(0, 2);
    }
    const auto kind = random.between(0, 9);
    if (kind < 2) s.in[s.in.rank - 1] = random.between(60, 300);
    if (kind == 2) s.n = random.between(8, 40);
}

inline Problem random_conv_problem(Random& random, const KernelConfig& config, bool many_images) {
    constexpr std::int64_t kLargest[] = {40, 10, 5};
    Problem p;
    p.op = config.op;
    p.dtype_a = config.dtype, p.dtype_b = config.dtype_b, p.dtype_out = config.dtype_out;
    ConvShape& s = p.conv;
    s.in = s.filter = s.stride = s.dilation = s.pad_before = s.pad_after = filled(config.ndim, 1);
    const Layout first = random.chance(70) ? Layout::nwgc : Layout::ngcw;
    p.layout = static_cast<Layout>(static_cast<int>(first) + config.ndim - 1);
    s.n = many_images ? random.between(3, 12) : random.between(1, 3);
    randomize_channels(random, s, config);
    for (int i = 0; i < config.ndim; ++i) randomize_window(random, s, i, kLargest[config.ndim - 1]);
    if (config.split_k > 1 && config.op == Op::conv_bwd_weight) deepen_pixels(random, s, config);
    impose_filter(s, config);
    stretch_depthwise(random, s, config);
    randomize_options(random, p);
    p.packed_b = config.pipeline == Pipeline::preshuffle;
    p.math = config.math;
    p.workspace_bytes = kNoWorkspaceLimit;
    return p;
}

// Nothing where luck did not find one; a kernel with odd wishes takes more tries.
inline std::optional<Problem> conv_problem_for(Random& random, const KernelConfig& config, const ArchSpec& arch,
                                               WorkRange work = kSmallConv, int tries = 300) {
    // A split reduction is deep whatever the rest.
    const double most = config.split_k > 1 ? std::max(work.most, kThreadedConv.most) : work.most;
    for (int i = 0; i < tries; ++i) {
        const Problem p = random_conv_problem(random, config, work.least > 0);
        if (check_problem(p) || !may_run(ProblemView(p), config, arch)) continue;
        if (const double flops = reference_flops(p); flops >= work.least && flops <= most) return p;
    }
    return {};
}

}  // namespace tilewise
