// SPDX-License-Identifier: MIT
// Loading and launching kernels on the emulated GPU, for emulated_device.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/result.hpp"
#include "device/device.hpp"
#include "device/emulated/fiber_stack.hpp"
#include "device/emulated/memory_map.hpp"

namespace tilewise {

// The launches of one device share this machine; one at a time uses it, under emulated_launches().
struct EmulatedMachine {
    emulated::MemoryMap memory;
    FiberStacks stacks;
    std::uint64_t seed = 1;           // of the next launch
    int lanes = 0;                    // of a warp
    bool flushes_subnormals = false;  // of 16 bits, in MFMA
};

// One launch at a time runs in the process.
std::mutex& emulated_launches();

Result<std::shared_ptr<const Code>> load_emulated_code(const BuiltKernel& kernel);
Result<std::unique_ptr<const Launch>> prepare_emulated_launch(std::shared_ptr<EmulatedMachine> machine,
                                                              std::shared_ptr<const Code> code, GpuGrid grid);

}  // namespace tilewise
