// SPDX-License-Identifier: MIT
// Makes a context the thread's current one, and the one before it again at the end. Where it already is, as in a program whose
// other libraries use the same device, that costs one cheap question.
#pragma once

#include "device/cuda/driver.hpp"

namespace tilewise {

class ContextScope {
public:
    ContextScope(const cuda_driver::Driver& driver, cuda_driver::CUcontext context) : driver_(driver) {
        driver_.context_get_current(&before_);
        if (before_ == context) return;
        changed_ = true;
        driver_.context_set_current(context);
    }
    ~ContextScope() {
        if (changed_) driver_.context_set_current(before_);
    }
    ContextScope(const ContextScope&) = delete;
    ContextScope& operator=(const ContextScope&) = delete;

private:
    const cuda_driver::Driver& driver_;
    cuda_driver::CUcontext before_ = nullptr;
    bool changed_ = false;
};

// While a stream of the program is being captured, calls that allocate or load are forbidden on this thread unless it says that
// they have nothing to do with the capture.
class OutsideCapture {
public:
    explicit OutsideCapture(const cuda_driver::Driver& driver) : driver_(driver) {
        driver_.exchange_capture_mode(&mode_);
    }
    ~OutsideCapture() { driver_.exchange_capture_mode(&mode_); }
    OutsideCapture(const OutsideCapture&) = delete;
    OutsideCapture& operator=(const OutsideCapture&) = delete;

private:
    const cuda_driver::Driver& driver_;
    cuda_driver::CUcaptureMode mode_ = cuda_driver::kCaptureRelaxed;
};

}  // namespace tilewise
