// SPDX-License-Identifier: MIT
// The functions of a GPU kernel's code, and the order in which a problem's launches call them: operands are packed, the kernel runs, the
// parts of a split reduction are added up. Real GPUs and the emulated one have their own kinds of functions.
#pragma once

#include <fmt/core.h>

#include "base/result.hpp"
#include "device/device_error.hpp"
#include "family/launch_plan.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {

template <class Function>
struct GpuFunctions {
    Function kernel = nullptr;
    Function reduce = nullptr;  // null for a kernel without one
    Function pack = nullptr;    // likewise
    Function pack_b = nullptr;  // likewise
};

// The arguments of a launch of one function.
struct GpuStep {
    int blocks = 0, threads = 0;
    std::int64_t shared_bytes = 0;
    Shape2 cluster{};
};

// That the code has what the plan launches.
template <class Function>
Status check_functions(const GpuFunctions<Function>& code, const GpuGrid& grid) {
    const auto missing = [](const char* symbol, const char* why) {
        return device_error(fmt::format("the kernel has no {}, which {}", symbol, why));
    };
    if (grid.reduce_blocks > 0 && !code.reduce) return missing(kReduceSymbol, "split_k needs");
    if (grid.pack_blocks > 0 && !code.pack) return missing(kPackSymbol, "operands that begin anywhere need");
    if (grid.pack_b_blocks > 0 && !code.pack_b) return missing(kPackBSymbol, "packs B ahead");
    return {};
}

// Calls launch(function, step) for each; it puts the function into the stream.
template <class Function, class LaunchStep>
Status launch_steps(const GpuFunctions<Function>& code, const GpuGrid& grid, const LaunchStep& launch) {
    if (grid.pack_blocks > 0) {
        auto status = launch(code.pack, GpuStep{grid.pack_blocks, grid.pack_threads});
        if (!status) return status;
    }
    const LaunchSpec& block = grid.block;
    auto status = launch(code.kernel, GpuStep{grid.blocks, block.threads, block.shared_bytes, block.cluster});
    if (!status || grid.reduce_blocks == 0) return status;
    return launch(code.reduce, GpuStep{grid.reduce_blocks, grid.reduce_threads});
}

// B in the form that the kernel reads, by the same kind of call; the function writes it to the workspace of its arguments.
template <class Function, class LaunchStep>
Status launch_pack_b(const GpuFunctions<Function>& code, const GpuGrid& grid, const LaunchStep& launch) {
    if (grid.pack_b_blocks == 0) {
        return unsupported_error("this kernel reads B as it is; there is nothing to pack");
    }
    return launch(code.pack_b, GpuStep{grid.pack_b_blocks, grid.pack_b_threads, grid.pack_b_shared_bytes});
}

}  // namespace tilewise
