// SPDX-License-Identifier: MIT
// Rows copied by a driver that copies memory of the host and wants what CUDA's wants of a box.
#include "device/cuda/cuda_rows.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "device/row_cases.hpp"

namespace tilewise {
namespace {

using namespace cuda_driver;
using namespace row_cases;

constexpr CUresult kInvalidValue = 1;

CUresult copy_bytes(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return kSuccess;
}

CUresult copy_box(const CUmemcpy3D* box, CUstream stream) {
    for (const CUmemcpy3D::Side* side : {&box->from, &box->to}) {
        if (side->pitch < box->width_bytes || side->height < box->height) return kInvalidValue;
    }
    for (std::size_t z = 0; z < box->depth; ++z) {
        for (std::size_t y = 0; y < box->height; ++y) {
            const auto at = [&](const CUmemcpy3D::Side& s) { return s.device + (z * s.height + y) * s.pitch; };
            copy_bytes(at(box->to), at(box->from), box->width_bytes, stream);
        }
    }
    return kSuccess;
}

CUresult name_error(CUresult, const char** text) {
    *text = "refused";
    return kSuccess;
}

TEST(CudaRows, CopyWhatWasAskedForAndNoMore) {
    Driver driver;
    driver.memcpy_async = copy_bytes;
    driver.memcpy_3d_async = copy_box;
    driver.get_error_name = driver.get_error_string = name_error;
    Random random(7);
    for (int i = 0; i < 500; ++i) {
        Case c = random_case(random, 40, 9);
        const auto status = copy_cuda_rows(driver, c.copy, nullptr);
        ASSERT_TRUE(status.ok()) << status.error().message;
        ASSERT_EQ(c.to, c.expected) << "case " << i;
    }
}

}  // namespace
}  // namespace tilewise
