// SPDX-License-Identifier: MIT
#include "measure/device_check.hpp"

#include <algorithm>

#include "build/code_suffix.hpp"
#include "kernels/common/to_int.hpp"
#include "measure/device_memory.hpp"
#include "measure/reference.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Blocks that one multiprocessor has at a time, so that one waits for memory while another computes.
constexpr int kBlocksPerUnit = 2;

int reference_blocks(const Problem& p, const ArchSpec& arch) {
    const auto tiles = [](std::int64_t size) { return (size + kCheckTile - 1) / kCheckTile; };
    const GemmView view = gemm_view(p);
    const std::int64_t all = view.batch * tiles(view.m) * tiles(view.n);
    return to_int(std::min<std::int64_t>(all, std::int64_t{kBlocksPerUnit} * arch.units));
}

// Two results may each be off.
constexpr double kResults = 2;

VerifyReport report_of(const Problem& p, const CheckAccount& account, std::string guards) {
    const GemmView view = gemm_view(p);
    VerifyReport report;
    report.method = VerifyMethod::on_device;
    report.max_error = account.max_error;
    report.tolerance = account.allowed;
    report.max_ratio = account.max_ratio;
    report.checked = static_cast<std::int64_t>(account.checked);
    report.failed = static_cast<std::int64_t>(account.failed);
    report.guards = std::move(guards);
    if (account.first != kNowhere) {
        const auto index = static_cast<std::int64_t>(account.first), line = index / view.n;
        report.failure = VerifyFailure{line / view.m, line % view.m,     index % view.n,        account.expected,
                                       account.got,   account.tolerance, account.unwritten != 0};
    }
    // A launch that judged only a part would otherwise pass.
    report.ok = report.failed == 0 && report.guards.empty() && report.checked == view.batch * view.m * view.n;
    return report;
}

}  // namespace

bool is_checkable_on(const Device& device, const Problem& problem) {
    // An emulated GPU would take longer than the host.
    return has_check_kernels(device.arch()) && device.code_suffix() != kEmulatedCode &&
           is_apart(stored_rows(problem, 0)) && is_apart(stored_rows(problem, 1));
}

Result<DeviceCheck> DeviceCheck::make(Device& device, Builder& builder, const Problem& problem, std::uint64_t seed) {
    const ArchSpec& arch = device.arch();
    auto fill = CheckKernel::make_fill(device, builder);
    if (!fill) return fill.error();
    const bool with_squares = error_model(problem, {1, arch.fp8_sum_bits}).input_unit != 0;
    auto reference = CheckKernel::make(device, builder, reference_request(arch, problem.op, with_squares),
                                       reference_blocks(problem, arch));
    if (!reference) return reference.error();
    DeviceCheck check(device, problem, std::move(*fill), std::move(*reference));
    for (const PlannedInput& input : planned_inputs(problem, seed)) {
        if (auto status = check.add_input(input); !status) return status.error();
    }
    if (auto status = check.add_output(); !status) return status.error();
    return check;
}

Status DeviceCheck::add_input(const PlannedInput& input) {
    auto buffer = DeviceBuffer::make(*device_, fill_, input.name, input.type, input.shape, problem_.align_bytes);
    if (!buffer) return buffer.error();
    auto status = buffer->fill_random(fill_, input.range, input.seed);
    if (status) status = buffer->seal(fill_);
    if (!status) return status;
    const std::byte* data = buffer->data();
    switch (input.role) {
        case OperandRole::a: operands_.a = data; break;
        case OperandRole::b: operands_.b = data; break;
        case OperandRole::original_c: original_c_ = data; break;
        case OperandRole::bias: operands_.bias = data; break;
        case OperandRole::scale_a: operands_.scale_a = reinterpret_cast<const float*>(data); break;
        case OperandRole::scale_b: operands_.scale_b = reinterpret_cast<const float*>(data); break;
        case OperandRole::d: operands_.d[d_count_++] = data; break;
    }
    buffers_.push_back(std::move(*buffer));
    return {};
}

Status DeviceCheck::add_output() {
    const StoredRows shape = stored_rows(problem_, 2);
    auto c = DeviceBuffer::make(*device_, fill_, "C", problem_.dtype_out, shape, problem_.align_bytes);
    if (!c) return c.error();
    operands_.c = c->data();
    buffers_.push_back(std::move(*c));
    return reset_output();
}

Status DeviceCheck::reset_output() const {
    const DeviceBuffer& c = buffers_.back();
    Status status;
    if (original_c_) {  // lies as C does
        const auto bytes = static_cast<std::size_t>(stored_rows(problem_, 2).span() * bytes_of(problem_.dtype_out));
        status = device_->copy(c.data(), original_c_, bytes, kDefaultStream);
    } else {
        status = c.poison(fill_);
    }
    return status ? device_->synchronize(kDefaultStream) : status;  // runs may be in any stream
}

Result<DeviceCheck::Judged> DeviceCheck::judge_all(float alpha, float beta, const VerifyOptions& options) const {
    if (auto status = device_->synchronize(kDefaultStream); !status) return status.error();
    auto guards = damage();
    if (!guards) return guards.error();
    const auto account = judge(alpha, beta, options.summation);
    if (!account) return account.error();
    return Judged{report_of(problem_, *account, std::move(*guards)), kResults * account->most_apart};
}

Result<VerifyReport> DeviceCheck::verify(float alpha, float beta, const VerifyOptions& options) const {
    auto judged = judge_all(alpha, beta, options);
    if (!judged) return judged.error();
    return std::move(judged->report);
}

Result<VerifyReport> DeviceCheck::verify_again(float alpha, float beta, const VerifyOptions& options) {
    if (known_) {
        auto report = known_->compare(fill_, buffers_.back());
        if (!report) return report;
        auto found = report->ok ? damage() : Result<std::string>(std::string());
        if (!found) return found.error();
        if (report->ok && found->empty()) return report;
    }
    auto judged = judge_all(alpha, beta, options);
    if (!judged) return judged.error();
    if (!judged->report.ok || known_) return std::move(judged->report);
    auto known = KnownOnDevice::make(*device_, buffers_.back(), judged->apart);
    if (!known) return known.error();
    known_.emplace(std::move(*known));
    return std::move(judged->report);
}

Result<std::string> DeviceCheck::damage() const {
    // C first, as there a kernel's mistakes show most.
    for (auto buffer = buffers_.rbegin(); buffer != buffers_.rend(); ++buffer) {
        auto found = buffer->damage(*device_, fill_);
        if (!found) return found.error();
        if (*found) return std::move(**found);
    }
    return std::string();
}

KernelArgs DeviceCheck::check_args() const {
    KernelArgs args = problem_args(problem_);
    args.a.data = const_cast<void*>(operands_.a);
    args.b.data = const_cast<void*>(operands_.b);
    args.c.data = operands_.c;
    args.bias = operands_.bias;
    args.scale_a = operands_.scale_a;
    args.scale_b = operands_.scale_b;
    std::copy(operands_.d.begin(), operands_.d.end(), args.d);
    return args;
}

Result<CheckAccount> DeviceCheck::judge(float alpha, float beta, const Summation& summation) const {
    CheckParameters parameters{};
    parameters.model = error_model(problem_, summation);
    parameters.steps = finish_steps(problem_, {alpha, beta, summation});
    parameters.a = kernel_dtype(problem_.dtype_a);
    parameters.b = kernel_dtype(problem_.dtype_b);
    parameters.out = kernel_dtype(problem_.dtype_out);
    parameters.original_c = original_c_;
    std::vector<CheckAccount> accounts(static_cast<std::size_t>(reference_.blocks()) * kCheckThreads);
    const std::size_t bytes = accounts.size() * sizeof(CheckAccount);
    auto memory = device_memory(*device_, static_cast<std::int64_t>(bytes));
    if (!memory) return memory.error();
    parameters.accounts = static_cast<CheckAccount*>(memory->get());
    auto status = reference_.run(check_args(), parameters);
    if (status) status = device_->copy(accounts.data(), memory->get(), bytes, kDefaultStream);
    if (!status) return status.error();
    CheckAccount all;
    for (const CheckAccount& one : accounts) merge(all, one);
    return all;
}

}  // namespace tilewise
