// SPDX-License-Identifier: MIT
#include "measure/checked_operands.hpp"

#include <optional>

#include "measure/device_check.hpp"
#include "measure/device_tensors.hpp"
#include "measure/known_result.hpp"
#include "problem/empty_problem.hpp"

namespace tilewise {
namespace {

class HostChecked final : public CheckedOperands {
public:
    explicit HostChecked(Tensors tensors) : tensors_(std::move(tensors)) {}

    Status place(Device& device) {
        auto placed = DeviceTensors::make(device, tensors_);
        if (!placed) return placed.error();
        placed_.emplace(std::move(*placed));
        return {};
    }
    const Operands& operands() const override { return placed_->operands(); }
    Result<VerifyReport> verify(float alpha, float beta, const VerifyOptions& options) override {
        if (auto status = placed_->fetch(); !status) return status.error();
        return verify_result(tensors_, alpha, beta, options);
    }
    Status reset() override {
        tensors_.reset_output();
        return placed_->send_output();
    }
    // The first that is right is what the others are compared with.
    Result<VerifyReport> verify_again(float alpha, float beta, const VerifyOptions& options) override {
        if (known_) {
            if (auto status = placed_->fetch_output(); !status) return status.error();
            return known_->compare(tensors_);
        }
        auto report = verify(alpha, beta, options);
        if (report && report->ok) known_.emplace(tensors_, alpha, beta);
        return report;
    }

private:
    Tensors tensors_;
    std::optional<DeviceTensors> placed_;
    std::optional<KnownResult> known_;
};

class DeviceChecked final : public CheckedOperands {
public:
    explicit DeviceChecked(DeviceCheck check) : check_(std::move(check)) {}

    const Operands& operands() const override { return check_.operands(); }
    Result<VerifyReport> verify(float alpha, float beta, const VerifyOptions& options) override {
        return check_.verify(alpha, beta, options);
    }
    Status reset() override { return check_.reset_output(); }
    Result<VerifyReport> verify_again(float alpha, float beta, const VerifyOptions& options) override {
        return check_.verify(alpha, beta, options);
    }

private:
    DeviceCheck check_;
};

}  // namespace

Result<std::unique_ptr<CheckedOperands>> make_checked_operands(Device& device, Builder& builder, const Problem& problem,
                                                               std::uint64_t seed, const VerifyOptions& options) {
    const bool invalid = check_problem(problem).has_value();
    if (!invalid && !is_empty(problem) && full_work(problem) > options.full_work && is_checkable_on(device, problem)) {
        auto check = DeviceCheck::make(device, builder, problem, seed);
        if (check) return std::unique_ptr<CheckedOperands>(std::make_unique<DeviceChecked>(std::move(*check)));
        // A machine that runs kernels of a pack may have no compiler for the check's own; the host can do with less.
        if (check.error().code != ErrorCode::toolchain) return check.error();
    }
    auto tensors = Tensors::make(problem, seed);
    if (!tensors) return tensors.error();
    auto checked = std::make_unique<HostChecked>(std::move(*tensors));
    if (auto status = checked->place(device); !status) return status.error();
    return std::unique_ptr<CheckedOperands>(std::move(checked));
}

}  // namespace tilewise
