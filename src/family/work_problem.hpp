// SPDX-License-Identifier: MIT
// A problem as the work of kernels is counted from it: what holds for all of them is worked out once.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "base/least_work.hpp"
#include "base/work.hpp"
#include "base/work_parts.hpp"
#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "family/cpu/conv_counts.hpp"

namespace tilewise {

// The chain of an epilogue for each result: instructions, powers and reciprocals among them, and elements of C and D.
struct ChainCounts {
    double instructions = 0, powers = 0, tensors = 0;
    bool has_bias = false;

    bool is_plain() const { return instructions == 0; }
};
ChainCounts chain_counts(const Problem& problem);

struct WorkProblem {
    WorkProblem(const Problem& problem, const ArchSpec& own_arch, int thread_count);

    ProblemView view;
    const ArchSpec& arch;
    int threads;   // of a CPU
    double bytes;  // that are read and written at least
    ChainCounts chain;
    std::optional<ConvCounts> conv;  // of a convolution on a CPU
};

// What the bound of a family needs of a config on an arch, whatever the problem: a struct of the family's own, worked out once for a
// table of kernels.
class WorkColumns {
public:
    WorkColumns() = default;
    template <class T>
    explicit WorkColumns(const T& columns) {
        static_assert(sizeof(T) <= kBytes && alignof(T) <= alignof(double) && std::is_trivially_copyable_v<T>);
        std::memcpy(bytes_.data(), &columns, sizeof columns);
    }
    template <class T>
    T as() const {
        T columns;
        std::memcpy(&columns, bytes_.data(), sizeof columns);
        return columns;
    }

private:
    static constexpr std::size_t kBytes = 128;
    alignas(double) std::array<std::byte, kBytes> bytes_{};
};

// Units that cover a size, the last perhaps in part.
inline double blocks_of(std::int64_t size, std::int64_t unit) {
    return std::ceil(static_cast<double>(size) / static_cast<double>(unit));
}

// The peak of the chip in Tflop/s; a type without a figure is as fast as the first that has one.
template <class N>
N peak_tflops(const ArchSpec& arch, DType dtype) {
    for (const Peak& peak : arch.peaks) {
        if (peak.dtype == dtype) return rate<N>(peak.tflops);
    }
    return arch.peaks.empty() ? N(1.0) : rate<N>(arch.peaks.front().tflops);
}

// Microseconds of cycles, by the clock that a chip's prices count in.
template <class N>
N cycles_us(const WorkName& name, N cycles, const ArchSpec& arch) {
    return named(name, cycles / N(arch.prices.clock.cycles_per_us));
}

}  // namespace tilewise
