// SPDX-License-Identifier: MIT
#include "measure/checked_operands.hpp"

#include <optional>

#include "measure/device_check.hpp"
#include "measure/device_tensors.hpp"
#include "measure/known_on_device.hpp"
#include "measure/known_result.hpp"
#include "problem/empty_problem.hpp"

namespace tilewise {
namespace {

// The output on a device, beside a result that is right.
struct JudgedOutput {
    CheckKernel fill;
    DeviceBuffer c;
    KnownOnDevice known;
    Operands operands;
};

class HostChecked final : public CheckedOperands {
public:
    explicit HostChecked(Tensors tensors) : tensors_(std::move(tensors)) {}

    Status place(Device& device, Builder& builder) {
        device_ = &device;
        builder_ = &builder;
        auto placed = DeviceTensors::make(device, tensors_);
        if (!placed) return placed.error();
        placed_.emplace(std::move(*placed));
        return {};
    }
    const Operands& operands() const override { return judged_ ? judged_->operands : placed_->operands(); }
    Result<VerifyReport> verify(float alpha, float beta, const VerifyOptions& options) override {
        if (auto status = placed_->fetch(); !status) return status.error();
        return verify_result(tensors_, alpha, beta, options);
    }
    Status reset() override {
        if (judged_ && !tensors_.problem().beta) return judged_->c.poison(judged_->fill);
        tensors_.reset_output();
        return judged_ ? copy_output(judged_->c.whole(), output().whole()) : placed_->send_output();
    }
    // The first that is right is what the others are compared with.
    Result<VerifyReport> verify_again(float alpha, float beta, const VerifyOptions& options) override {
        if (judged_) return compare_on_device(alpha, beta, options);
        if (known_) {
            if (auto status = placed_->fetch_output(); !status) return status.error();
            return known_->compare(tensors_);
        }
        auto report = verify(alpha, beta, options);
        if (!report || !report->ok) return report;
        if (auto status = keep(alpha, beta, options.summation); !status) return status.error();
        return report;
    }

private:
    const GuardedBuffer& output() const { return *tensors_.buffers()[kOutputBuffer]; }
    Status copy_output(void* to, const void* from) const {
        return device_->copy(to, from, static_cast<std::size_t>(output().whole_bytes()), kDefaultStream);
    }

    // The reference says where a result differs, and by how much. It may look at a sample and find nothing: then the comparison
    // stands, which has seen every element.
    Result<VerifyReport> compare_on_device(float alpha, float beta, const VerifyOptions& options) {
        auto compared = judged_->known.compare(judged_->fill, judged_->c);
        if (!compared || compared->ok) return compared;
        // Inputs too, which an earlier kernel may have changed.
        if (auto status = placed_->fetch(); !status) return status.error();
        if (auto status = copy_output(output().whole(), judged_->c.whole()); !status) return status.error();
        VerifyReport judged = verify_result(tensors_, alpha, beta, options);
        const bool is_sampled = judged.method != VerifyMethod::every_element;
        return judged.ok && is_sampled ? std::move(compared) : Result<VerifyReport>(std::move(judged));
    }

    Status keep(float alpha, float beta, const Summation& summation) {
        const bool on_device =
            !device_->shares_host_memory() && has_check_kernels(device_->arch()) && is_apart(output().shape());
        auto status = on_device ? keep_on_device(apart_at_most(tensors_, alpha, beta, summation)) : Status();
        // As in make_checked_operands.
        if (!status && status.error().code != ErrorCode::toolchain) return status;
        if (!judged_) known_.emplace(tensors_, alpha, beta, summation);
        return {};
    }

    Status keep_on_device(double apart) {
        auto fill = CheckKernel::make_fill(*device_, *builder_);
        if (!fill) return fill.error();
        const Problem& p = tensors_.problem();
        auto c = DeviceBuffer::make(*device_, *fill, "C", p.dtype_out, output().shape(), p.align_bytes);
        if (!c) return c.error();
        if (auto status = copy_output(c->whole(), output().whole()); !status) return status;
        auto known = KnownOnDevice::make(*device_, *c, apart);
        if (!known) return known.error();
        Operands operands = placed_->operands();
        operands.c = c->data();
        judged_.emplace(JudgedOutput{std::move(*fill), std::move(*c), std::move(*known), operands});
        return {};
    }

    static constexpr std::size_t kOutputBuffer = 2;  // of Tensors::buffers

    Tensors tensors_;
    Device* device_ = nullptr;
    Builder* builder_ = nullptr;
    std::optional<DeviceTensors> placed_;
    std::optional<JudgedOutput> judged_;  // where the device compares
    std::optional<KnownResult> known_;    // where the host does
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
        return check_.verify_again(alpha, beta, options);
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
    if (auto status = checked->place(device, builder); !status) return status.error();
    return std::unique_ptr<CheckedOperands>(std::move(checked));
}

}  // namespace tilewise
