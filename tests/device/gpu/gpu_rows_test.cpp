// SPDX-License-Identifier: MIT
// Rows copied by drivers that copy memory of the host and want what the real ones want of a box.
#include "device/gpu/gpu_rows.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "device/cuda/driver.hpp"
#include "device/hip/runtime.hpp"
#include "device/row_cases.hpp"

namespace tilewise {
namespace {

using namespace row_cases;

constexpr int kInvalidValue = 1;

// Sides of both vendors say where they begin, how far rows are apart, and how many of them a slice has.
struct Side {
    void* memory;
    std::size_t pitch, height;
    unsigned char* row(std::size_t z, std::size_t y) const {
        return static_cast<unsigned char*>(memory) + (z * height + y) * pitch;
    }
};

int copy_rows_of(const Side& to, const Side& from, std::size_t width, std::size_t height, std::size_t depth) {
    for (const Side* side : {&to, &from}) {
        if (side->pitch < width || side->height < height) return kInvalidValue;
    }
    for (std::size_t z = 0; z < depth; ++z) {
        for (std::size_t y = 0; y < height; ++y) std::memcpy(to.row(z, y), from.row(z, y), width);
    }
    return 0;
}

template <class Driver>
void expect_copies(const Driver& driver) {
    Random random(7);
    for (int i = 0; i < 500; ++i) {
        Case c = random_case(random, 40, 9);
        const auto status = copy_gpu_rows(driver, c.copy, nullptr);
        ASSERT_TRUE(status.ok()) << status.error().message;
        ASSERT_EQ(c.to, c.expected) << "case " << i;
    }
}

TEST(GpuRows, CudaCopiesWhatWasAskedForAndNoMore) {
    using namespace cuda_driver;
    Driver driver;
    driver.memcpy_async = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
        std::memcpy(to, from, bytes);
        return kSuccess;
    };
    driver.memcpy_3d_async = [](const CUmemcpy3D* box, CUstream) {
        const auto side = [](const CUmemcpy3D::Side& s) { return Side{s.device, s.pitch, s.height}; };
        return copy_rows_of(side(box->to), side(box->from), box->width_bytes, box->height, box->depth);
    };
    driver.get_error_name = driver.get_error_string = [](CUresult, const char** text) {
        *text = "refused";
        return kSuccess;
    };
    expect_copies(driver);
}

TEST(GpuRows, HipCopiesWhatWasAskedForAndNoMore) {
    using namespace hip_runtime;
    Runtime runtime;
    runtime.memcpy_async = [](void* to, const void* from, std::size_t bytes, HipCopyKind, HipStream) {
        std::memcpy(to, from, bytes);
        return kSuccess;
    };
    runtime.memcpy_3d_async = [](const HipMemcpy3D* box, HipStream) {
        const auto side = [](const HipMemcpy3D::Side& s) {
            return Side{s.memory.memory, s.memory.pitch, s.memory.height};
        };
        return copy_rows_of(side(box->to), side(box->from), box->width_bytes, box->height, box->depth);
    };
    runtime.get_error_name = runtime.get_error_string = [](HipResult) { return "refused"; };
    expect_copies(runtime);
}

}  // namespace
}  // namespace tilewise
