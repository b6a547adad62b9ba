// SPDX-License-Identifier: MIT
// Blocks and plans are those of the convolution on mma.sync (family/cuda/mma_conv.cpp); loops and arithmetic those of GEMM on MFMA.
#include "config/conv_tiles.hpp"
#include "family/code_rules.hpp"
#include "family/cuda/conv_grid.hpp"
#include "family/cuda/cuda_source.hpp"
#include "family/cuda/gather_conv.hpp"
#include "family/families.hpp"
#include "family/hip/mfma_conv_work.hpp"
#include "family/hip/mfma_rules.hpp"

namespace tilewise {
namespace mfma_conv {
namespace {

constexpr Pipeline kPipelines[] = {Pipeline::basic_v1, Pipeline::mem, Pipeline::compv3, Pipeline::compv4};
constexpr std::string_view kFixed[] = {"cluster", "producer_waves", "swap_ab",        "cluster_k",
                                       "math",    "gather",         "blocks_per_unit"};

// Columns of backward weight that are counted in whole chunks of channels leave one by one (ChunkColumns, kernels/gpu/gather_conv.hpp).
bool runs_of_chunks(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.op == Op::conv_bwd_weight && counts_whole_chunks(c) && c.vector_c > 1 &&
           refuse(out, TILEWISE_TEXT("vectors of {} results of channels that begin anywhere", c.vector_c),
                  TILEWISE_TEXT("1, or a vector of the input"));
}

// Merged groups share neither tiles by steps nor chunks that are filled up (kernels/hip/mfma_conv/merged_conv.hpp).
bool merges_otherwise(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.num_groups_to_merge > 1 && (c.stream_k != StreamK::off || counts_whole_chunks(c)) &&
           refuse(out,
                  TILEWISE_TEXT("{} merged groups with stream_k {} and vectors of {} and {}", c.num_groups_to_merge,
                                name_of(c.stream_k), c.vector_a, c.vector_b),
                  TILEWISE_TEXT("no stream_k, and vectors of 4 bytes or more"));
}

constexpr ConfigRule kRules[] = {
    {"code_warp_tile", "one matrix instruction has this shape", mfma_gemm::other_square},
    kOneWaveAlongK,
    {"code_waves", "a wave has whole squares of sums", mfma_gemm::uneven_waves},
    {"code_depth", "a lane has 16 bytes along k", mfma_gemm::other_depth},
    {"code_buffers", "a pipeline has as many buffers as it fills", mfma_gemm::other_buffers},
    {"code_results", "vectors of results stay within a wave's columns", mfma_gemm::crosses_runs},
    {"code_columns", "columns that are filled up leave one by one", runs_of_chunks,
     [](KernelConfig& c, const ArchSpec&) { c.vector_c = 1; }},
    {"code_merged", "merged groups are one plain product", merges_otherwise},
    gather_conv::kWholeSteps,
    gather_conv::kVectorsAlongChannels,
};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return cuda_source({"hip/mfma_conv/mfma_conv", kReduceLine}, c, arch);
}

}  // namespace
}  // namespace mfma_conv

constinit const Family kMfmaConv = {
    .id = FamilyId::mfma_conv,
    .backend = Backend::hip,
    .description = "an implicit product on MFMA whose threads gather the activation: any problem",
    .ops = kEveryConv,
    .pipelines = mfma_conv::kPipelines,
    .fixed = mfma_conv::kFixed,
    .rules = mfma_conv::kRules,
    .spec = block_spec,
    .plan = gather_grid,
    .work = {mfma_conv_work<double>, mfma_conv_work<Term>, mfma_conv_work<Noted>},
    .source = mfma_conv::source,
};

}  // namespace tilewise
