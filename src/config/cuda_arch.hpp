// SPDX-License-Identifier: MIT
// The name of a CUDA arch says where its code runs: "sm_80" is compute capability 8.0 and runs on later chips of its kind, too;
// "sm_90a" is for 9.0 alone. Which code a chip gets (device/cuda), and which is built (build/), follow from it.
#pragma once

#include <optional>
#include <string_view>

namespace tilewise {

struct CudaArch {
    int major = 0;
    int minor = 0;
    bool one_chip = false;  // its code runs on that chip and on no other

    bool operator==(const CudaArch&) const = default;
};

// None for a name of another form.
std::optional<CudaArch> parse_cuda_arch(std::string_view name);

}  // namespace tilewise
