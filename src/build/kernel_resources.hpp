// SPDX-License-Identifier: MIT
// A GPU kernel needs so much of a multiprocessor, as its assembler reports it. The manifest keeps it, so that spilling and
// low occupancy are seen without a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewise {

struct KernelResources {
    std::int64_t registers = 0;     // a thread
    std::int64_t shared_bytes = 0;  // a block, without what is asked for at launch
    std::int64_t local_bytes = 0;   // a thread: spilled registers and arrays that are not in registers; 0 is good
    // Registers that are kept elsewhere, where the object says so; those of a wave may be in lanes of others, without a byte of memory.
    std::int64_t spilled_registers = 0;

    bool operator==(const KernelResources&) const = default;
};

// From the log of ptxas -v. Where a file has several kernels, the most that one of them needs; nothing when it says
// nothing about any.
std::optional<KernelResources> resources_from_log(std::string_view log);

}  // namespace tilewise
