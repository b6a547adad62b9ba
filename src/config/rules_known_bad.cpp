// SPDX-License-Identifier: MIT
// Combinations that are known to give wrong results, or that a pipeline's code cannot express, on some targets.
// Each holds only where an arch file names it under "known_bad".
#include <algorithm>

#include "config/geometry.hpp"
#include "config/rule_groups.hpp"

namespace tilewise {
namespace {

bool odd_repeat(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (c.epilogue != Epilogue::cshuffle || !tile_is_multiple(c)) return false;
    const int repeat_m = c.tile.m / (c.wave.m * c.warp_tile.m), repeat_n = c.tile.n / (c.wave.n * c.warp_tile.n);
    const auto odd = [](int repeat, int width) { return width == 32 && repeat > 1 && repeat % 2 == 1; };
    return (odd(repeat_m, c.warp_tile.m) || odd(repeat_n, c.warp_tile.n)) &&
           refuse(out, TILEWISE_TEXT("{}x{} repeats of a 32-wide warp tile", repeat_m, repeat_n),
                  TILEWISE_TEXT("1 or an even number"));
}

void correct_odd_repeat(KernelConfig& c, const ArchSpec& arch) {
    if (arch.epilogues[static_cast<std::size_t>(Epilogue::direct)]) c.epilogue = Epilogue::direct;
}

bool interwave_weight(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.op == Op::conv_bwd_weight && c.scheduler == Scheduler::interwave && bytes_of(c.dtype) == 2 &&
           wave_count(c) > 1 &&
           refuse(out, TILEWISE_TEXT("interwave with {} waves in {}", wave_count(c), name_of(c.dtype)),
                  TILEWISE_TEXT("intrawave, or one wave"));
}

void correct_interwave(KernelConfig& c, const ArchSpec&) { c.scheduler = Scheduler::intrawave; }

bool async_shape(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.pipeline == Pipeline::basic_async_v1 && (c.wave.n != 2 || c.warp_tile.n != 16) &&
           refuse(out, TILEWISE_TEXT("wave {}, warp tile {}", print_shape(c.wave), print_shape(c.warp_tile)),
                  TILEWISE_TEXT("wave n of 2 and warp tile n of 16"));
}

bool too_few_loads(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (c.pipeline != Pipeline::compv6) return false;
    const std::int64_t threads = std::max<std::int64_t>(1, threads_per_block(c, arch));
    const std::int64_t a = std::int64_t{c.tile.m} * c.tile.k / (threads * std::max(1, c.vector_a));
    const std::int64_t b = std::int64_t{c.tile.n} * c.tile.k / (threads * std::max(1, c.vector_b));
    return (a < 1 || b < 1) && refuse(out, TILEWISE_TEXT("{} and {} loads of A and B per thread", a, b),
                                      TILEWISE_TEXT("at least 1 of each"));
}

void correct_loads(KernelConfig& c, const ArchSpec& arch) {
    while (c.vector_a > 1 && too_few_loads(c, arch, nullptr)) c.vector_a /= 2;
    while (c.vector_b > 1 && too_few_loads(c, arch, nullptr)) c.vector_b /= 2;
}

bool eight_waves(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.pipeline == Pipeline::compv3 && wave_count(c) >= 8 &&
           refuse(out, TILEWISE_TEXT("compv3 with {} waves", wave_count(c)), TILEWISE_TEXT("fewer than 8"));
}

bool shuffle_map(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (c.pipeline != Pipeline::preshuffle || !tile_is_multiple(c)) return false;
    constexpr int kAccessBytes = 16;
    const std::int64_t repeats = c.tile.m / (c.wave.m * c.warp_tile.m);
    const std::int64_t bytes =
        std::int64_t{c.warp_tile.m} * c.warp_tile.k * bytes_of(c.dtype) * repeats / arch.wave_size;
    return bytes % kAccessBytes != 0 && refuse(out, TILEWISE_TEXT("{} bytes of A per thread", bytes),
                                               TILEWISE_TEXT("a multiple of {}", kAccessBytes));
}

// Where the matrix units round fp32 to tf32, a deeper warp tile is theirs and a depth of 1 is plain arithmetic.
bool rounds_fp32(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    if (c.dtype != DType::fp32 || c.specialization == Specialization::depthwise) return false;
    const bool rounds = c.warp_tile.k > 1, allowed = c.math == Math::tf32 || c.math == Math::tf32x3;
    return rounds != allowed &&
           refuse(out, TILEWISE_TEXT("warp tile {} with math {}", print_shape(c.warp_tile), name_of(c.math)),
                  TILEWISE_TEXT("{}", rounds ? "math tf32 or tf32x3" : "math strict"));
}

void correct_rounding(KernelConfig& c, const ArchSpec&) { c.math = c.warp_tile.k > 1 ? Math::tf32x3 : Math::strict; }

bool not_k_major(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (!has_wide_waves(c, arch) || bytes_of(c.dtype) == 2) return false;
    return (contiguous_axis(c, 0) != Axis::k || contiguous_axis(c, 1) != Axis::k) &&
           refuse(out, TILEWISE_TEXT("{} inputs in {} {}", name_of(c.dtype), name_of(c.op), name_of(c.layout)),
                  TILEWISE_TEXT("both inputs contiguous along the reduction"));
}

// Where the operand of a warpgroup tile's columns lies along them, its lines fill whole lines of shared memory.
bool broken_lines(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    if (is_conv(c.op) || !has_wide_waves(c, arch)) return false;
    constexpr int kLineBytes = 128;
    const int operand = c.swap_ab ? 0 : 1;
    const std::int64_t bytes = std::int64_t{c.tile.n} * bytes_of(c.dtype);
    return contiguous_axis(c, operand) != Axis::k && bytes % kLineBytes != 0 &&
           refuse(out, TILEWISE_TEXT("{} bytes of {} side by side", bytes, c.swap_ab ? 'a' : 'b'),
                  TILEWISE_TEXT("a multiple of {}, or lines along k", kLineBytes));
}

bool no_turns(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    return c.pipeline == Pipeline::compv5 && has_wide_waves(c, arch) && wave_count(c) != 2 &&
           refuse(out, TILEWISE_TEXT("compv5 with {} waves", wave_count(c)), TILEWISE_TEXT("2, which take turns"));
}

constexpr bool kKnownBad = true;

constexpr ConfigRule kKnownBadRules[] = {
    {"cshuffle_odd_repeat", "an odd number of 32-wide repeats goes through the shuffle in the wrong order", odd_repeat,
     correct_odd_repeat, kKnownBad},
    {"bwd_weight_interwave", "half of the weight gradient stays zero with several waves in 16-bit types",
     interwave_weight, correct_interwave, kKnownBad},
    {"async_wave_shape", "the single-stage asynchronous copy is written for two waves of 16 columns", async_shape,
     nullptr, kKnownBad},
    {"compv6_loads", "the pipeline's prefetch needs every thread to load something", too_few_loads, correct_loads,
     kKnownBad},
    {"compv3_eight_waves", "eight waves overrun the register prefetch and give wrong sums", eight_waves, nullptr,
     kKnownBad},
    {"tf32_instruction", "the matrix units take fp32 as tf32, so they serve the tf32 classes only", rounds_fp32,
     correct_rounding, kKnownBad},
    {"wide_wave_k_major", "the warpgroup's matrix unit transposes 16-bit operands only", not_k_major, nullptr,
     kKnownBad},
    {"wide_wave_lines", "operands across the reduction come in lines of 128 bytes", broken_lines, nullptr, kKnownBad},
    {"wide_wave_turns", "two warpgroups take tiles in turns, no more and no fewer", no_turns, nullptr, kKnownBad},
    {"preshuffle_thread_map", "each thread's share of A is whole 16-byte accesses", shuffle_map, nullptr, kKnownBad},
};

}  // namespace

std::span<const ConfigRule> known_bad_rules() { return kKnownBadRules; }

}  // namespace tilewise
