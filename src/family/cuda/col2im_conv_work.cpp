// SPDX-License-Identifier: MIT
#include "config/conv_tiles.hpp"
#include "config/geometry.hpp"
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/block_product_work.hpp"
#include "family/cuda/works.hpp"

namespace tilewise {
namespace {

// Columns are written by lanes far apart and read tap by tap, in or out of the cache at about the same rate, and finished by a kernel of
// their own.
template <class N>
N column_us(const GemmView& v, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.col2im_conv;
    const double bytes = 4.0 * static_cast<double>(v.m) * static_cast<double>(v.n) * c.split_k;
    return bytes_us<N>("columns", bytes, N(price.columns_gbps)) + N(price.second_kernel_us);
}

// A product whose parts of k are as many products side by side. Their sums leave in whole accesses, and are not finished.
GemmView parts_view(const GemmView& whole, const KernelConfig& c) {
    GemmView parts = whole;
    parts.batch = c.split_k, parts.k = (whole.k + c.split_k - 1) / c.split_k;
    return parts;
}
KernelConfig parts_config(KernelConfig c, const ArchSpec& arch) {
    c.split_k = 1, c.vector_c = static_cast<int>(arch.load_bytes / bytes_of(c.dtype_out));
    return c;
}
template <class N>
N parts_us(const GemmView& whole, const WorkProblem& problem, const KernelConfig& c) {
    WorkProblem plain = problem;
    plain.chain = {};
    return block_product_us<N>(parts_view(whole, c), plain, parts_config(c, problem.arch));
}

// The weights of a block's columns take longer where accesses are less than whole. One block's wait counts: the others of a
// unit work meanwhile.
template <class N>
N narrow_weights_us(const GemmView& v, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.block_product;
    const double bytes = static_cast<double>(v.k) / c.split_k * c.tile.n * static_cast<double>(bytes_of(c.dtype_b));
    const double accesses = static_cast<double>(arch.load_bytes) / static_cast<double>(access_bytes(c, 1));
    return named("narrow weights", N(bytes * (accesses - 1)) * N(price.narrow_copy_share) /
                                       (N(price.warp_copy_gbps) * static_cast<double>(wave_count(c)) * 1e3));
}

}  // namespace

template <class N>
N col2im_conv_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const GemmView view = columns_view(problem.view.problem);
    return named("product", parts_us<N>(view, problem, c)) + narrow_weights_us<N>(view, c, problem.arch) +
           named("sums", column_us<N>(view, c, problem.arch));
}
template double col2im_conv_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term col2im_conv_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted col2im_conv_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

WorkColumns col2im_conv_columns(const KernelConfig& c, const ArchSpec& arch) {
    return WorkColumns(block_columns(parts_config(c, arch), arch));
}

// The parts are in the view, so that the config must not count them again.
double col2im_conv_least(const WorkProblem& problem, const KernelConfig& c, const WorkColumns& columns) {
    const GemmView view = columns_view(problem.view.problem);
    return block_product_least(parts_view(view, c), problem, c, columns.as<BlockColumns>()) +
           column_us<double>(view, c, problem.arch);
}

}  // namespace tilewise
