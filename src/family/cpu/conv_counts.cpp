// SPDX-License-Identifier: MIT
#include "family/cpu/conv_counts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "config/geometry.hpp"
#include "config/workspace.hpp"
#include "family/work_problem.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kSetsBytes = 4096;  // of the first cache: lines so far apart share a set

double whole(double size, double unit) { return std::ceil(size / unit); }

bool is_one_everywhere(const Extents& extents) {
    return std::all_of(extents.size.begin(), extents.size.begin() + extents.rank,
                       [](std::int64_t extent) { return extent == 1; });
}

bool is_unpadded(const ConvShape& s) {
    for (int i = 0; i < s.in.rank; ++i) {
        if (s.pad_before[i] != 0 || s.pad_after[i] != 0) return false;
    }
    return true;
}

// The micro-kernels take values as they lie in memory.
bool is_as_stored(const KernelConfig& c) {
    return (c.dtype == DType::fp32 && c.warp_tile.k == 1) || (c.dtype == DType::bf16 && c.warp_tile.k == 2);
}

}  // namespace

ConvCounts::ConvCounts(const ProblemView& view, const ArchSpec& arch)
    : problem_(view.problem), arch_(arch), gemm_(view.gemm), lanes_(vector_lanes(arch)) {
    const ConvShape& s = problem_.conv;
    const std::int64_t c = s.c / s.g, k = s.k / s.g;
    groups_ = static_cast<double>(s.g);
    channels_ = static_cast<double>(problem_.op == Op::conv_bwd_data ? k : c);
    out_channels_ = problem_.op == Op::conv_bwd_data ? c : k;
    per_vector_ = std::max(1.0, static_cast<double>(arch.load_bytes) / static_cast<double>(bytes_of(problem_.dtype_a)));
    channels_last_ = is_channels_last(problem_.layout);
    in_place_ = is_pointwise(problem_) && is_one_everywhere(s.stride) && is_unpadded(s) && channels_last_;
    const int last = s.in.rank - 1;
    dense_ = problem_.op != Op::conv_bwd_data && s.g == 1 && s.dilation[last] == 1 && channels_last_;
    const bool reads_y = problem_.op == Op::conv_bwd_data;
    row_bytes_ = (reads_y ? s.k : s.c % kSetsBytes * (s.stride[last] % kSetsBytes)) * bytes_of(problem_.dtype_a);
    if (problem_.op == Op::conv_bwd_data) {
        add_residue_classes();
    } else {
        add_forward_class();
    }
}

void ConvCounts::add_forward_class() {
    const ConvShape& s = problem_.conv;
    const Extents out = output_size(s);
    TapClass all;
    all.positions = static_cast<double>(s.n);
    for (int i = 0; i < out.rank; ++i) {
        all.positions *= static_cast<double>(out[i]);
        all.line = static_cast<double>(out[i]);
        all.taps *= s.filter[i];
        all.line_taps = s.filter[i];
    }
    classes_[class_count_++] = all;
}

// Taps t and t + step meet the same input pixels, step being the stride without what it shares with the dilation. So of the
// `stride` residues, some meet one tap more than others, and some none.
void ConvCounts::add_residue_classes() {
    const ConvShape& s = problem_.conv;
    classes_[class_count_++].positions = static_cast<double>(s.n);
    for (int i = 0; i < s.in.rank; ++i) {
        const std::int64_t stride = s.stride[i], filter = s.filter[i];
        const std::int64_t step = stride / std::gcd(stride, s.dilation[i]);
        const std::int64_t more = filter % step, met = std::min(step, filter);
        const double along = std::max(1.0, static_cast<double>(s.in[i]) / static_cast<double>(stride));
        const double real = static_cast<double>(std::min(stride, s.in[i])) / static_cast<double>(stride);
        struct Kind {
            std::int64_t residues, taps;
        };
        const std::array<Kind, 3> kinds = {
            Kind{more, filter / step + 1}, {met - more, filter / step}, {stride - met, 0}};
        std::array<TapClass, 27> before = classes_;
        const std::size_t count = class_count_;
        class_count_ = 0;
        for (const auto& [residues, taps] : kinds) {
            for (std::size_t j = 0; j < count && residues > 0; ++j) {
                TapClass one = before[j];
                one.residues *= static_cast<double>(residues) * real;
                one.positions *= along;
                one.line = along;
                one.taps *= taps;
                one.line_taps = taps;
                classes_[class_count_++] = one;
            }
        }
    }
}

// As kernels/cpu/blocked_conv/blocked_conv.hpp decides it: instead of gathering.
bool ConvCounts::reads_through_pointers(const KernelConfig& c) const {
    constexpr std::int64_t kFewColumns = 64;
    const bool is_weight = problem_.op == Op::conv_bwd_weight;
    const bool wanted =
        c.pipeline == Pipeline::basic_v1 || (c.pipeline == Pipeline::preshuffle && gemm_.n <= kFewColumns);
    const bool whole_units = is_weight || static_cast<std::int64_t>(channels_) % c.warp_tile.k == 0;
    return wanted && !c.explicit_gemm && (is_weight || c.split_k == 1) && is_as_stored(c) && channels_last_ &&
           whole_units;
}

bool ConvCounts::is_crowded(const KernelConfig& c) const {
    constexpr std::int64_t kWays = 8;
    return c.warp_tile.m * std::gcd(row_bytes_, kSetsBytes) > kWays * kSetsBytes;
}

// Rows of patches, gathered for every block of columns.
void ConvCounts::add_gathering(ImplicitWork& w, const TapClass& of, const KernelConfig& c) const {
    const double k = static_cast<double>(of.taps) * channels_, blocks = whole(k, c.tile.k);
    const double columns = blocks_of(gemm_.n, c.tile.n), rows = groups_ * of.residues * of.positions * columns;
    const bool reads_rows = is_as_stored(c) && c.pipeline != Pipeline::compv3 && c.pipeline != Pipeline::compv4;
    if (!reads_rows) w.packed_a += rows * k / per_vector_;
    if (in_place_) return;
    const double run = channels_last_ ? channels_ * (dense_ ? static_cast<double>(of.line_taps) : 1.0) : 1.0;
    const double runs = std::max(0.0, k / run + blocks - 1);  // a class without taps gathers nothing
    w.gathered_rows += rows * blocks;
    w.gathered_runs += rows * runs;
    w.gathered_vectors += rows * (k / per_vector_ + runs / 2);  // a run ends in half a vector
}

// Weights, packed once.
void ConvCounts::add_weights(ImplicitWork& w, const TapClass& of, const KernelConfig& c) const {
    if (c.pipeline == Pipeline::preshuffle) return;
    const double k = static_cast<double>(of.taps) * channels_, products = groups_ * of.residues;
    const double panels = blocks_of(gemm_.n, c.warp_tile.n);
    if (problem_.op == Op::conv_fwd) {
        w.turned_b += products * blocks_of(gemm_.n, lanes_) * static_cast<double>(lanes_) * k / per_vector_;
        w.copied_runs += products * panels * whole(k, c.tile.k);
    } else {
        w.copied_b += products * static_cast<double>(gemm_.n) * k / per_vector_;
        w.copied_runs += products * panels * k;
    }
}

// Columns of patches of backward weight, position by position and panel by panel.
void ConvCounts::add_patches(ImplicitWork& w, const TapClass& of, const KernelConfig& c) const {
    const double panels = blocks_of(gemm_.n, c.warp_tile.n), positions = groups_ * of.positions;
    const double width = static_cast<double>(std::min<std::int64_t>(gemm_.n, c.warp_tile.n));
    const double run = channels_last_ ? channels_ * (dense_ ? static_cast<double>(of.line_taps) : 1.0) : 1.0;
    const double runs = in_place_ ? panels : panels * (1 + (width - 1) / run);
    w.gathered_rows += positions * panels;
    w.gathered_runs += positions * runs;
    w.gathered_vectors += positions * (static_cast<double>(gemm_.n) / per_vector_ + runs / 2);
    const bool reads_dy = c.warp_tile.k == 1 && c.dtype == DType::fp32 && c.pipeline != Pipeline::compv3;
    if (!reads_dy) w.packed_a += positions * static_cast<double>(gemm_.m) / per_vector_ * blocks_of(gemm_.n, c.tile.n);
}

// Backward weight with both activations in place: a product for each tap, in blocks of positions.
void ConvCounts::add_pointed_weights(ImplicitWork& w, const TapClass& of, const KernelConfig& c) const {
    constexpr std::int64_t kBlockPositions = 1024;  // of kernels/cpu/blocked_conv/pointed_weight.hpp
    const auto positions = static_cast<std::int64_t>(of.positions);
    const double times = groups_ * static_cast<double>(of.taps);
    const ProductShape shape = {gemm_.m, static_cast<std::int64_t>(channels_), positions, kBlockPositions, true};
    const MicroKernelWork product = product_work(shape, times, c, lanes_);
    w.product += product;
    w.pointers += of.positions * static_cast<double>(of.taps);
    w.pointed_reads += product.vector_reads;
    w.packed_a += groups_ * of.positions * static_cast<double>(gemm_.m) / per_vector_;
    w.tasks += groups_;
}

ImplicitWork ConvCounts::implicit_work(const KernelConfig& c) const {
    ImplicitWork w;
    const bool is_weight = problem_.op == Op::conv_bwd_weight, points = reads_through_pointers(c);
    for (std::size_t i = 0; i < class_count_; ++i) {
        const TapClass& of = classes_[i];
        const auto positions = static_cast<std::int64_t>(of.positions);
        const double times = groups_ * of.residues;
        const std::int64_t m = is_weight ? gemm_.m : positions;
        const std::int64_t k = is_weight ? positions : of.taps * static_cast<std::int64_t>(channels_);
        const std::int64_t block_k = points ? std::max<std::int64_t>(k, 1) : c.tile.k;
        const double sums = times * static_cast<double>(m * gemm_.n) / static_cast<double>(lanes_);
        w.sums += 2 * sums * std::max(0.0, blocks_of(k, block_k) - 1);
        if (sums_in_workspace(c)) w.sums += sums * (c.split_k + 2);
        if (is_weight && points) {
            add_pointed_weights(w, of, c);
            continue;
        }
        const MicroKernelWork product = product_work({m, gemm_.n, k, block_k}, times, c, lanes_);
        w.product += product;
        w.tasks += times;
        if (is_weight) {
            add_patches(w, of, c);
            continue;
        }
        add_weights(w, of, c);
        if (points) {
            w.pointers += of.residues * of.positions * static_cast<double>(of.taps);
            w.pointed_reads += product.row_reads;
        } else {
            add_gathering(w, of, c);
        }
        if (is_crowded(c) && (points || in_place_)) w.crowded_reads += product.row_reads;
    }
    return w;
}

double ConvCounts::least_products() const {
    const auto n = static_cast<double>(gemm_.n), m = static_cast<double>(gemm_.m);
    double sum = 0;
    for (std::size_t i = 0; i < class_count_; ++i) {
        const TapClass& of = classes_[i];
        const double each = problem_.op == Op::conv_bwd_weight ? m : static_cast<double>(of.taps) * channels_;
        sum += groups_ * of.residues * std::floor(of.positions) * each;
    }
    return sum * n / static_cast<double>(lanes_);
}

double ConvCounts::parts(const KernelConfig& c) const {
    return blocks_of(gemm_.m, c.warp_tile.m) * blocks_of(gemm_.n, c.warp_tile.n) * groups_ * c.split_k;
}

}  // namespace tilewise
