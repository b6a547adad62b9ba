// SPDX-License-Identifier: MIT
#include "measure/result_check.hpp"

#include <utility>

#include "measure/bound_run.hpp"
#include "measure/tensors.hpp"

namespace tilewise {
namespace {

// A sweep judges hundreds of kernels a minute: of a large problem the host computes fewer rows than for one run. What takes it more than
// some 20 ms is left to a GPU that can judge.
constexpr double kJudgedWork = 2e8, kHostWork = 2e7;

}  // namespace

VerifyOptions ResultCheck::options_for(const KernelConfig& config) const {
    VerifyOptions options;
    options.full_work = options.project_work = kJudgedWork;
    options.summation = summation_of(config, device_->arch());
    return options;
}

Result<ResultCheck> ResultCheck::make(Device& device, Builder& builder, const Problem& problem, std::uint64_t seed) {
    ResultCheck check(device, builder, problem, seed);
    if (auto status = check.ready(); !status) return status.error();
    check.alpha_ = suggested_alpha(problem);
    check.beta_ = problem.beta ? 0.5f : 0.0f;  // not 1, so that a kernel that ignores its value is caught
    return check;
}

// Operands for one run.
Status ResultCheck::ready() {
    if (operands_) return is_used_ ? operands_->reset() : Status();
    VerifyOptions options;
    options.full_work = kHostWork;
    auto operands = make_checked_operands(*device_, *builder_, problem_, seed_, options);
    if (!operands) return operands.error();
    operands_ = std::move(*operands);
    is_used_ = false;
    return {};
}

Result<Verdict> ResultCheck::check(std::shared_ptr<const Executable> executable, const KernelConfig& config,
                                   void* workspace) {
    auto status = ready();
    if (!status) return status.error();
    is_used_ = true;
    const auto bound =
        BoundRun::make(std::move(executable), *device_, {&operands_->operands(), 1}, alpha_, beta_, workspace);
    if (!bound) return bound.error();
    status = bound->run();
    if (status) status = device_->synchronize(kDefaultStream);
    if (!status) return status.error();
    const auto report = operands_->verify_again(alpha_, beta_, options_for(config));
    if (!report) return report.error();
    if (!report->ok) operands_.reset();
    return Verdict{report->ok, report->max_error, report->ok ? "" : describe(*report)};
}

}  // namespace tilewise
