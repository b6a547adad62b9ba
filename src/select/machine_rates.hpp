// SPDX-License-Identifier: MIT
// Small arithmetic that both analytic models (cost_model.cpp, gpu_cost_model.cpp) begin with.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "config/arch_spec.hpp"

namespace tilewise {

// Units that cover a size, the last perhaps in part.
inline double blocks_of(std::int64_t size, std::int64_t unit) {
    return std::ceil(static_cast<double>(size) / static_cast<double>(unit));
}

// Times of parts of the machine that work side by side: about the longest, and a little more the closer they are and the less
// sharp it is.
inline double side_by_side(std::initializer_list<double> times, double sharpness) {
    double sum = 0;
    for (const double time : times) sum += std::pow(time, sharpness);
    return std::pow(sum, 1 / sharpness);
}

// Of the arch file; a type without a figure is as fast as the first that has one.
inline double peak_tflops(const ArchSpec& arch, DType dtype) {
    for (const Peak& peak : arch.peaks) {
        if (peak.dtype == dtype) return peak.tflops;
    }
    return arch.peaks.empty() ? 1.0 : arch.peaks.front().tflops;
}

}  // namespace tilewise
