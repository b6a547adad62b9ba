// SPDX-License-Identifier: MIT
// A large problem on a GPU with nothing of it on the host: operands made and filled there, the bits being those of
// Tensors for the same seed; the result judged there, every element, by an independent kernel
// (kernels/gpu/reference.hpp, conv_reference.hpp) with the host's own tolerances; guards and inputs looked at there. A GEMM of
// 8192 x 8192 x 8192 takes a fraction of a second, which on the host only a sample of it would.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "build/builder.hpp"
#include "device/device.hpp"
#include "measure/device_buffer.hpp"
#include "measure/known_on_device.hpp"
#include "measure/operand_plan.hpp"
#include "measure/verify.hpp"
#include "run/executable.hpp"

namespace tilewise {

// Whether DeviceCheck can be had for the problem: a GPU that has the kernels, and no operand whose matrices overlap,
// as filling them side by side would not give what filling them one after the other does.
bool is_checkable_on(const Device& device, const Problem& problem);

class DeviceCheck {
public:
    // The device must outlive this. Compiles two small kernels where the cache does not have them.
    static Result<DeviceCheck> make(Device& device, Builder& builder, const Problem& problem, std::uint64_t seed);

    const Operands& operands() const { return operands_; }  // all but alpha, beta and the workspace
    // Before a further run: C is poisoned, or with beta gets its first contents back.
    Status reset_output() const;
    // After a run with this alpha and beta: what verify_result would say. Of the options only the summation counts.
    Result<VerifyReport> verify(float alpha, float beta, const VerifyOptions& options = {}) const;
    // The same. Once a result was right, others are first compared with it, and judged only where they differ.
    Result<VerifyReport> verify_again(float alpha, float beta, const VerifyOptions& options);

private:
    DeviceCheck(Device& device, const Problem& problem, CheckKernel fill, CheckKernel reference)
        : device_(&device), problem_(problem), fill_(std::move(fill)), reference_(std::move(reference)) {}
    Status add_input(const PlannedInput& input);
    Status add_output();
    struct Judged {
        VerifyReport report;
        double apart = 0;  // that another right result may be from this one
    };
    Result<Judged> judge_all(float alpha, float beta, const VerifyOptions& options) const;
    Result<CheckAccount> judge(float alpha, float beta, const Summation& summation) const;
    KernelArgs check_args() const;
    Result<std::string> damage() const;

    Device* device_;
    Problem problem_;
    CheckKernel fill_, reference_;
    std::vector<DeviceBuffer> buffers_;  // C is the last
    const void* original_c_ = nullptr;
    Operands operands_;
    std::size_t d_count_ = 0;
    std::optional<KnownOnDevice> known_;
};

}  // namespace tilewise
