// SPDX-License-Identifier: MIT
// The common part of the tables of drivers' functions. A vendor's table says reason(code), and the types of what its functions take.
#pragma once

#include <fmt/core.h>

#include "base/result.hpp"
#include "device/device_error.hpp"

namespace tilewise {

// The numbers of every vendor.
enum GpuCaptureMode : int { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };
enum GpuCaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };

template <class Driver>
struct GpuDriver {
    static constexpr int kSuccess = 0;

    // "cuModuleLoadData failed: CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image ..."; calls are named without the vendor's prefix.
    Error failure(const char* call, int code) const {
        const auto& self = static_cast<const Driver&>(*this);
        return device_error(fmt::format("{}{} failed: {}", Driver::kPrefix, call, self.reason(code)));
    }
    Status check(int code, const char* call) const { return code == kSuccess ? Status() : Status(failure(call, code)); }
};

}  // namespace tilewise
