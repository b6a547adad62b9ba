// SPDX-License-Identifier: MIT
// Host tensors where a device can use them: in place for a device that shares the host's memory, as a copy, guards included,
// for one that does not. Between make() and fetch() kernels run on operands(); after fetch() the host tensors hold what the
// kernels left, in every buffer and guard, and can be verified.
#pragma once

#include <memory>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "measure/tensors.hpp"
#include "run/executable.hpp"

namespace tilewise {

class DeviceTensors {
public:
    // Both must outlive this.
    static Result<DeviceTensors> make(Device& device, const Tensors& tensors);

    const Operands& operands() const { return operands_; }  // all but alpha, beta and the workspace
    Status fetch() const;
    // The same of C alone, guards included, and the other way.
    Status fetch_output() const;
    Status send_output() const;

private:
    DeviceTensors(Device& device, const Tensors& tensors) : device_(&device), tensors_(&tensors) {}

    Device* device_;
    const Tensors* tensors_;
    Operands operands_;
    std::vector<std::shared_ptr<void>> copies_;  // of each buffer of the tensors; empty when memory is shared
};

}  // namespace tilewise
