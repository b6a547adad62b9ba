// SPDX-License-Identifier: MIT
// A kernel that serves checking, not computing: built and loaded like any other, run to its end with one struct of
// kernels/common/device_check.hpp, which goes to the device before and comes back after.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "build/builder.hpp"
#include "device/device.hpp"
#include "kernels/common/device_check.hpp"

namespace tilewise {

class CheckKernel {
public:
    // Built as the kind of code that the device loads. The device must outlive this.
    static Result<CheckKernel> make(Device& device, Builder& builder, BuildRequest request, int blocks);
    // The one for buffers.
    static Result<CheckKernel> make_fill(Device& device, Builder& builder);

    // The kernel finds the struct at args.workspace.
    Status run(KernelArgs args, BufferTask& task) const { return run_with(args, &task, sizeof task); }
    Status run(KernelArgs args, CheckParameters& check) const { return run_with(args, &check, sizeof check); }
    int blocks() const { return blocks_; }

private:
    CheckKernel() = default;
    Status run_with(KernelArgs args, void* parameters, std::size_t bytes) const;

    Device* device_ = nullptr;
    std::unique_ptr<const Launch> launch_;
    std::shared_ptr<void> parameters_;  // on the device
    int blocks_ = 0;
};

// Whether there are such kernels for the arch; without them results are judged on the host.
bool has_check_kernels(const ArchSpec& arch);
// These requests compile the filling and inspecting of buffers, and the reference, with sums of squares where the error model
// asks for them.
BuildRequest fill_request(const ArchSpec& arch);
BuildRequest reference_request(const ArchSpec& arch, Op op, bool with_squares);

}  // namespace tilewise
