// SPDX-License-Identifier: MIT
#include "measure/known_on_device.hpp"

#include <utility>

#include "measure/device_memory.hpp"

namespace tilewise {

Result<KnownOnDevice> KnownOnDevice::make(Device& device, const DeviceBuffer& c, double apart) {
    KnownOnDevice known;
    known.device_ = &device;
    known.apart_ = apart;
    auto memory = device_memory(device, c.whole_bytes());
    if (!memory) return memory.error();
    known.memory_ = std::move(*memory);
    const auto bytes = static_cast<std::size_t>(c.whole_bytes());
    auto status = device.copy(known.memory_.get(), c.whole(), bytes, kDefaultStream);
    if (status) status = device.synchronize(kDefaultStream);
    if (!status) return status.error();
    return known;
}

Result<VerifyReport> KnownOnDevice::compare(const CheckKernel& fill, const DeviceBuffer& c) const {
    if (auto status = device_->synchronize(kDefaultStream); !status) return status.error();
    auto guards = c.damage(*device_, fill);
    if (!guards) return guards.error();
    const auto task = c.compare(fill, memory_.get(), apart_);
    if (!task) return task.error();
    VerifyReport report;
    report.method = VerifyMethod::known_result;
    report.checked = task->matrices * task->rows * task->row_length;
    report.failed = static_cast<std::int64_t>(task->failed);
    report.max_error = unflipped(task->least_flipped_error);
    report.tolerance = apart_;
    report.guards = guards->value_or("");
    report.ok = report.failed == 0 && report.guards.empty();
    return report;
}

}  // namespace tilewise
