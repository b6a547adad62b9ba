// SPDX-License-Identifier: MIT
// From a config to what a compiler needs: a short source text that instantiates a template of kernels/, and the CPU
// features it is compiled for. Only code fields matter here: configs that differ in launch fields give the same text.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

struct KernelSource {
    std::string text;
    std::vector<std::string> features;  // of the arch file, those that the kernel uses
};

// Whether there is a template for the config.
bool has_template(const KernelConfig& config);

Result<KernelSource> generate_source(const KernelConfig& config, const ArchSpec& arch);

// The CPU features a kernel uses: those of its arch, and those its warp tile's depth needs.
std::vector<std::string> kernel_features(const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
