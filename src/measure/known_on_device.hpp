// SPDX-License-Identifier: MIT
// A result that was judged right, kept on its device, where those of other kernels are compared with it: every element, in
// the time that reading both takes. known_result.hpp does the same on the host.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "measure/device_buffer.hpp"
#include "measure/verify.hpp"

namespace tilewise {

class KnownOnDevice {
public:
    // `c` holds what a kernel left that was judged right. Others may be so far apart from it before they are rounded.
    static Result<KnownOnDevice> make(Device& device, const DeviceBuffer& c, double apart);

    // `c` after another kernel's run. The report names no element: who wants to know asks the reference.
    Result<VerifyReport> compare(const CheckKernel& fill, const DeviceBuffer& c) const;

private:
    KnownOnDevice() = default;

    Device* device_ = nullptr;
    std::shared_ptr<void> memory_;  // a copy of the buffer
    double apart_ = 0;
};

}  // namespace tilewise
