// SPDX-License-Identifier: MIT
// A CUDA arch's name says where its code runs.
#include "config/cuda_arch.hpp"

#include <gtest/gtest.h>

namespace tilewise {
namespace {

TEST(CudaArchName, VersionAndWhetherItIsForOneChip) {
    EXPECT_EQ(parse_cuda_arch("sm_80"), (CudaArch{8, 0, false}));
    EXPECT_EQ(parse_cuda_arch("sm_89"), (CudaArch{8, 9, false}));
    EXPECT_EQ(parse_cuda_arch("sm_90a"), (CudaArch{9, 0, true}));
    EXPECT_EQ(parse_cuda_arch("sm_120"), (CudaArch{12, 0, false}));
    for (const char* name : {"", "sm_", "sm_a", "sm_8", "80", "gfx90a", "sm_90b", "sm_9x", "sm_-80", "sm_99999"}) {
        EXPECT_FALSE(parse_cuda_arch(name).has_value()) << name;
    }
}

}  // namespace
}  // namespace tilewise
