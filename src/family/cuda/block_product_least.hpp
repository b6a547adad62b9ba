// SPDX-License-Identifier: MIT
// The least time of a product by blocks: what block_product_work.hpp counts, with all rounds taken together. A sum of soft maxima is no
// less than the soft maximum of sums, so that no prediction falls below it.
#pragma once

#include "family/work_problem.hpp"

namespace tilewise {

// The numbers of a config on an arch, whatever the problem.
struct BlockColumns {
    double neighbours, units;        // blocks of a unit, units that blocks can use
    double flop_us;                  // of a unit, at its best
    double row_bytes, column_bytes;  // of a tile through the cache, for each step along k
    double same_rows_share;          // of the row bytes, where all blocks read the same
    double latency_us;               // for each byte of a tile, of a round
    double copy_us;                  // of a warp, for each step along k
    double store_us;                 // of a tile
    double all_share, fixed_us;      // of all tiles; beside them
    double between_us;               // for each round but the first
    double sum_us;                   // for each result
    int split_k;
    bool streams;  // blocks share what is left over
};
BlockColumns block_columns(const KernelConfig& config, const ArchSpec& arch);
double block_product_least(const GemmView& v, const WorkProblem& problem, const KernelConfig& c,
                           const BlockColumns& of);

// As rows of families: products of GEMM, of convolutions that gather, and of columns.
WorkColumns block_gemm_columns(const KernelConfig& config, const ArchSpec& arch);
double block_gemm_least(const WorkProblem& problem, const KernelConfig& config, const WorkColumns& columns);
double gather_conv_least(const WorkProblem& problem, const KernelConfig& config, const WorkColumns& columns);
WorkColumns col2im_conv_columns(const KernelConfig& config, const ArchSpec& arch);
double col2im_conv_least(const WorkProblem& problem, const KernelConfig& config, const WorkColumns& columns);

}  // namespace tilewise
