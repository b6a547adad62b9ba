// SPDX-License-Identifier: MIT
// Small arithmetic that both analytic models (cost_model.cpp, gpu_cost_model.cpp) begin with.
#pragma once

#include <cmath>
#include <cstdint>

#include "config/arch_spec.hpp"

namespace tilewise {

// Units that cover a size, the last perhaps in part.
inline double blocks_of(std::int64_t size, std::int64_t unit) {
    return std::ceil(static_cast<double>(size) / static_cast<double>(unit));
}

// Of the arch file; a type without a figure is as fast as the first that has one.
inline double peak_tflops(const ArchSpec& arch, DType dtype) {
    for (const Peak& peak : arch.peaks) {
        if (peak.dtype == dtype) return peak.tflops;
    }
    return arch.peaks.empty() ? 1.0 : arch.peaks.front().tflops;
}

}  // namespace tilewise
