// SPDX-License-Identifier: MIT
// Operands of a problem where a device can use them, whose result can be judged: on the host for small problems and
// for devices that share its memory, on the device itself for large ones. Running and validating a problem starts here.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "build/builder.hpp"
#include "device/device.hpp"
#include "measure/verify.hpp"
#include "run/executable.hpp"

namespace tilewise {

class CheckedOperands {
public:
    virtual ~CheckedOperands() = default;
    virtual const Operands& operands() const = 0;  // all but alpha, beta and the workspace
    // After one run with this alpha and beta.
    virtual Result<VerifyReport> verify(float alpha, float beta, const VerifyOptions& options) = 0;
    // Before a further run: the output is poisoned, or with beta gets its first contents back.
    virtual Status reset() = 0;
    // After a further run: the same, which for a problem that has been verified before, and was right, takes less time.
    virtual Result<VerifyReport> verify_again(float alpha, float beta, const VerifyOptions& options) = 0;
};

// Random by the seed, and the same bits wherever they are judged. Device and builder must outlive the operands.
Result<std::unique_ptr<CheckedOperands>> make_checked_operands(Device& device, Builder& builder, const Problem& problem,
                                                               std::uint64_t seed, const VerifyOptions& options = {});

}  // namespace tilewise
