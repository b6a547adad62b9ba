// SPDX-License-Identifier: MIT
#include "config/depthwise_spec.hpp"
#include "family/cuda/works.hpp"
#include "family/families.hpp"
#include "family/gpu/conv_grid.hpp"
#include "family/gpu/depthwise_rules.hpp"
#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace depthwise_toeplitz {
namespace {

constexpr int kChannels = 16, kInputs = 16;

bool is_one(const Extents& e) { return e.rank == 0 || (e[0] == 1 && e[1] == 1); }

bool other_filter(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr std::int64_t kMostRows = 9;  // whose sums and Toeplitz matrices registers hold
    const bool fits = c.ct_filter.rank == 2 && c.ct_stride.rank == 2 && is_one(c.ct_stride) &&
                      c.ct_filter[0] <= kMostRows && c.ct_filter[1] + kToeplitzWarp.n - 1 <= kInputs;
    return !fits && refuse(out, TILEWISE_TEXT("another filter or stride, or none compiled in"),
                           TILEWISE_TEXT("2-D with stride 1, up to {} x {}", kMostRows, kInputs - kToeplitzWarp.n + 1));
}

bool other_shape(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !(c.wave == kToeplitzWave && c.warp_tile == kToeplitzWarp && c.tile.n == kChannels &&
             c.tile.k == kToeplitzWarp.k) &&
           refuse(out, TILEWISE_TEXT("tile {}, wave {}", print_shape(c.tile), print_shape(c.wave)),
                  TILEWISE_TEXT("{} channels, wave {}", kChannels, print_shape(kToeplitzWave)));
}

constexpr ConfigRule kRules[] = {
    depthwise_rules::kSplitWeights,
    {"code_filter", "lines of taps make a Toeplitz matrix that fits an instruction", other_filter},
    kChannelsLast,
    depthwise_rules::kMatrixTypes,
    {"code_shape", "the template has one shape of block", other_shape},
    depthwise_rules::kNotDilated,
    depthwise_rules::kMatrixVectors};

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"cuda/depthwise_toeplitz/depthwise_toeplitz",
                       c.op == Op::conv_bwd_weight ? depthwise_rules::kSecondKernel : ""},
                      c, arch, depthwise_rules::depthwise_lines(c, arch));
}

}  // namespace
}  // namespace depthwise_toeplitz

constinit const Family kDepthwiseToeplitz = {
    .id = FamilyId::depthwise_toeplitz,
    .backend = Backend::cuda,
    .description = "matrix units multiply lines of pixels by a Toeplitz matrix of the taps of each channel",
    .ops = kEveryConv,
    .pipelines = depthwise_rules::kBasic,
    .fixed = depthwise_rules::kMatrixFixed,
    .rules = depthwise_toeplitz::kRules,
    .spec = block_spec,
    .plan = depthwise_grid,
    .work = {depthwise_matrix_work<double>, depthwise_matrix_work<Term>, depthwise_matrix_work<Noted>},
    .source = depthwise_toeplitz::source,
};

}  // namespace tilewise
