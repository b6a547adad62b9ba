// SPDX-License-Identifier: MIT
// The state of this thread while it calls a driver.
#pragma once

#include "device/gpu/gpu_driver.hpp"

namespace tilewise {

// Makes a context (a device, where a driver has no contexts) the thread's current one, and the one before it again at the end.
// Where it already is, as in a program whose other libraries use the same device, that costs one cheap question.
template <class Driver>
class ContextScope {
public:
    using Context = typename Driver::Context;

    ContextScope(const Driver& driver, Context context) : driver_(driver) {
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
    const Driver& driver_;
    Context before_{};
    bool changed_ = false;
};

// While a stream of the program is being captured, calls that allocate or load are forbidden on this thread unless it says that
// they have nothing to do with the capture.
template <class Driver>
class OutsideCapture {
public:
    explicit OutsideCapture(const Driver& driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
    ~OutsideCapture() { driver_.exchange_capture_mode(&mode_); }
    OutsideCapture(const OutsideCapture&) = delete;
    OutsideCapture& operator=(const OutsideCapture&) = delete;

private:
    const Driver& driver_;
    GpuCaptureMode mode_ = kCaptureRelaxed;
};

}  // namespace tilewise
