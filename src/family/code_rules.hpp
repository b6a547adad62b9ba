// SPDX-License-Identifier: MIT
// Rules about code that more than one family has: those that follow from a row of the table, and those that rows share.
#pragma once

#include "config/rule_groups.hpp"
#include "family/family.hpp"

namespace tilewise {

// A rule that follows from a row: its operations, pipelines and fixed fields; or that holds for all templates.
struct CodeRule {
    std::string_view name;
    std::string_view reason;
    bool (*broken)(const Family&, const KernelConfig&, Rejected* out);
    void (*correct)(const Family&, KernelConfig&) = nullptr;
};
std::span<const CodeRule> code_rules();  // in the order they are checked

inline constexpr Op kGemmOnly[] = {Op::gemm};
inline constexpr Op kEveryConv[] = {Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight};
inline constexpr Op kDataConvs[] = {Op::conv_fwd, Op::conv_bwd_data};
inline constexpr Op kForwardOnly[] = {Op::conv_fwd};
inline constexpr Op kDataOnly[] = {Op::conv_bwd_data};
inline constexpr Op kWeightOnly[] = {Op::conv_bwd_weight};

inline constexpr Pipeline kAnyConvPipeline[] = {Pipeline::basic_v1,   Pipeline::mem,           Pipeline::compv3,
                                                Pipeline::compv4,     Pipeline::compv5,        Pipeline::compv6,
                                                Pipeline::comp_async, Pipeline::basic_async_v1};

// Rules that rows share; each function says whether a config breaks one.
namespace code {
bool waves_along_k(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool waves_along_n(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool channels_first(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_inputs(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_types(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool compiled_in(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool direct_results(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool not_persistent(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_producers(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool sums_apart(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool narrow_vectors(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool crosses_columns(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_mma(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
}  // namespace code

inline constexpr ConfigRule kOneWaveAlongK = {"code_wave_k", "one wave has all of k", code::waves_along_k,
                                              [](KernelConfig& c, const ArchSpec&) { c.wave.k = 1; }};
inline constexpr ConfigRule kOneWaveAlongN = {"code_wave_n", "one wave has all of n", code::waves_along_n};
inline constexpr ConfigRule kChannelsLast = {"code_channels", "copies take neighbouring channels",
                                             code::channels_first};
inline constexpr ConfigRule k16BitInputs = {"code_types", "the family multiplies 16-bit elements", code::other_inputs};
inline constexpr ConfigRule k16BitTypes = {"code_types", "the family reads and writes 16-bit elements",
                                           code::other_types};
inline constexpr ConfigRule kNothingCompiledIn = {
    "code_compile_time", "the family learns the filter at launch", code::compiled_in,
    [](KernelConfig& c, const ArchSpec&) { c.ct_filter = c.ct_stride = c.ct_dilation = Extents{}; }};
inline constexpr ConfigRule kStagedResults = {
    "code_epilogue", "results leave through shared memory", code::direct_results,
    [](KernelConfig& c, const ArchSpec&) { c.epilogue = Epilogue::cshuffle; }};
inline constexpr ConfigRule kIsPersistent = {"code_persistent", "blocks walk over tiles", code::not_persistent,
                                             [](KernelConfig& c, const ArchSpec&) { c.persistent = true; }};
inline constexpr ConfigRule kOneProducerWave = {"code_producer", "one wave loads", code::other_producers,
                                                [](KernelConfig& c, const ArchSpec&) { c.producer_waves = 1; }};
inline constexpr ConfigRule kSumsMeet = {"code_sums", "parts of the reduction meet in the workspace or in a cluster",
                                         code::sums_apart};
inline constexpr ConfigRule kWholeVectors = {"code_vectors", "operands come by accesses of 16 bytes",
                                             code::narrow_vectors};
inline constexpr ConfigRule kDrainsVectors = {"code_results", "vectors of results stay within a warp's columns",
                                              code::crosses_columns};
inline constexpr ConfigRule kMmaShape = {"code_warp_tile", "one matrix instruction has this shape", code::other_mma};

}  // namespace tilewise
