// SPDX-License-Identifier: MIT
// An analytic prediction of a GPU kernel's time: rounds of tiles over the units, each as long as its arithmetic or its loads
// take, beside what memory and cache allow in all. It ranks; it does not promise.
#pragma once

#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

// Of a product alone, which reads and writes so many bytes of memory at least.
double predicted_product_us(const GemmView& view, double memory_bytes, const KernelConfig& config,
                            const ArchSpec& arch);

double predicted_gpu_us(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
