// SPDX-License-Identifier: MIT
// Judges the results of many kernels on one problem, on random operands between guards. The first result is judged by the
// library's reference; once one is found right the others are compared with it, element by element, with a tolerance that the
// reference gives. Before each run the output is poisoned, so that what a kernel does not write is found.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "build/builder.hpp"
#include "config/kernel_config.hpp"
#include "device/device.hpp"
#include "measure/checked_operands.hpp"
#include "run/executable.hpp"

namespace tilewise {

struct Verdict {
    bool ok = false;
    double max_error = 0;  // infinite if a NaN is where none should be
    std::string reason;    // of a result that is not right
};

class ResultCheck {
public:
    // The device and the builder must outlive this.
    static Result<ResultCheck> make(Device& device, Builder& builder, const Problem& problem, std::uint64_t seed);

    // Runs the kernel once and judges what it left. The workspace is large enough for it. An error says that it could not be run.
    Result<Verdict> check(std::shared_ptr<const Executable> executable, const KernelConfig& config, void* workspace);

private:
    ResultCheck(Device& device, Builder& builder, const Problem& problem, std::uint64_t seed)
        : device_(&device), builder_(&builder), problem_(problem), seed_(seed) {}
    Status ready();
    VerifyOptions options_for(const KernelConfig& config) const;

    Device* device_;
    Builder* builder_;
    Problem problem_;
    std::uint64_t seed_;
    std::unique_ptr<CheckedOperands> operands_;  // none after a wrong result: its kernel may have written anywhere
    float alpha_ = 1, beta_ = 0;
    bool is_used_ = false;  // an output is there from before
};

}  // namespace tilewise
