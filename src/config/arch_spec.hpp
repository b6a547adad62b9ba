// SPDX-License-Identifier: MIT
// An arch says what a target can do and how fast: one value per file of arch/, an instruction set, with the numbers of a chip that
// has it (config/chip.hpp). Hardware numbers live in those files and nowhere else; rules, rule sets and work read them from here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "config/chip.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

// Kinds of kernel that have limits of their own on the tile.
enum class Operator : std::uint8_t { gemm, multi_d, preshuffle, conv_fwd, conv_bwd_data, conv_bwd_weight, depthwise };
template <>
struct EnumNames<Operator> {
    static constexpr std::string_view kind = "operator";
    static constexpr std::array<std::string_view, 7> names = {
        "gemm", "multi_d", "preshuffle", "conv_fwd", "conv_bwd_data", "conv_bwd_weight", "depthwise"};
};
inline constexpr std::size_t kOperatorCount = EnumNames<Operator>::names.size();
Operator operator_of(const KernelConfig& config);

struct TileLimits {
    Shape3 min;    // least tile extents
    Shape3 align;  // what they are multiples of
};

// Whether a pipeline works with two shared-memory buffers in turn.
enum class Buffering : std::uint8_t { single, either, twofold };
template <>
struct EnumNames<Buffering> {
    static constexpr std::string_view kind = "buffering";
    static constexpr std::array<std::string_view, 3> names = {"single", "either", "double"};
};

struct PipelineSpec {
    bool supported = false;
    std::array<bool, kSchedulerCount> schedulers{};
    std::array<bool, 4> ops{};  // indexed by Op
    Buffering buffering = Buffering::single;
    int min_stages = 1;  // of the shared-memory ring
    int max_stages = 1;
    bool producers = false;  // needs waves that only load
};

// The two input types of a kernel: "bf16", or "fp8_bf8" for a mix.
struct DTypePair {
    DType a = DType::fp32;
    DType b = DType::fp32;

    bool operator==(const DTypePair&) const = default;
};
std::string print_pair(const DTypePair& pair);
Result<DTypePair> parse_pair(std::string_view text);

// The matrix instructions (or CPU micro-kernels) for one pair of input types.
struct WarpTiles {
    DTypePair dtypes;
    std::vector<Shape3> tiles;
};

// A CPU feature, beyond those of the arch, that warp tiles of this depth use.
struct DepthFeature {
    DType dtype = DType::fp32;
    int depth = 1;
    std::string feature;
};

inline constexpr int kFloatBits = 24;  // of the significand of fp32

struct ArchSpec {
    std::string name;
    std::string family;
    Backend backend = Backend::cpu;
    std::string description;
    bool provisional = false;  // numbers that no machine has confirmed yet

    std::vector<std::string> cpu_features;  // what a CPU must have to be this target
    std::vector<DepthFeature> depth_features;

    int wave_size = 1;  // threads of a wave
    // Where a warp tile of this many rows is computed by a wider wave (a warpgroup); 0 for none.
    int wide_wave_rows = 0;
    int wide_wave_size = 0;
    int max_threads = 1;                // in a block
    int registers = 0;                  // 32-bit registers of a unit; 0 = no limit of this kind
    int accumulators_per_thread = 0;    // 32-bit registers a block's accumulators may take; 0 = no limit of this kind
    std::int64_t shared_bytes = 0;      // what a block's operand tiles may occupy: shared memory, or cache on a CPU
    int load_bytes = 1;                 // widest single access
    int max_cluster = 1;                // blocks that can share loads
    int dies = 1;                       // with a cache each, among which successive blocks are dealt out
    int direct_copy_bytes = 0;          // of a lane, at most, in a copy straight to shared memory; 0 = no such copies
    bool small_float_products = false;  // matrix units multiply fp8 and bf8 as they are here
    bool turned_reads = false;          // shared memory gives 16-bit elements of neighbouring lines to one lane
    bool flushes_subnormals = false;    // matrix units take 16-bit subnormals for zero
    int fp8_sum_bits = kFloatBits;  // what products of 8-bit floats are added up with: fp32, or less in matrix units

    std::array<bool, EnumNames<Epilogue>::names.size()> epilogues{};
    std::vector<Shape3> waves;
    std::vector<WarpTiles> warp_tiles;
    std::vector<Shape3> depthwise_tiles;  // pixels x channels x 1 that one wave computes at a time
    // Those for bf16, where they differ: of depth 2, two rows of taps at once.
    std::vector<Shape3> depthwise_bf16_tiles;
    std::array<PipelineSpec, kPipelineCount> pipelines;
    std::array<TileLimits, kOperatorCount> limits;
    // For each field of role option, by index into config_fields(): the operations that have it.
    std::vector<std::array<bool, 4>> options;
    std::vector<std::string> known_bad;  // rules for combinations known to be wrong on this target

    // Its chip gives these.
    std::string chip;
    int units = 1;
    std::int64_t cache_bytes = 0;
    std::vector<Peak> peaks;
    double memory_gbps = 0;
    double cache_gbps = 0;
    double pack_gbps = 0;
    double launch_us = 0;
    Prices prices;

    Json json;  // the file as it was read, with the chip in the place of its name

    const PipelineSpec& pipeline(Pipeline p) const { return pipelines[static_cast<std::size_t>(p)]; }
    const WarpTiles* find_warp_tiles(const DTypePair& dtypes) const;
    bool has_option(std::string_view field, Op op) const;
    bool is_gpu() const { return facts_of(backend).is_gpu; }
    bool is_known_bad(std::string_view rule) const;
};

// Gives the arch the numbers of a chip of its backend.
void set_chip(ArchSpec& arch, const Chip& chip);

// Reads one arch file; an error names the file, the line and the key.
Result<ArchSpec> parse_arch(std::string_view text, const std::string& file);

}  // namespace tilewise
