// SPDX-License-Identifier: MIT
#include "device/null/null_device.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "device/device_error.hpp"
#include "device/host_memory.hpp"
#include "device/host_rows.hpp"

namespace tilewise {
namespace {

class NullCode final : public Code {
public:
    std::int64_t packed_b_bytes(const KernelArgs&) const override { return 0; }
};

class PreparedNullLaunch final : public Launch {
public:
    PreparedNullLaunch(const NullDevice& device, LaunchPlan plan) : device_(device), plan_(std::move(plan)) {}

    Status run(const KernelArgs& args, Stream stream) const override {
        device_.launches.push_back({args, plan_, stream});
        return {};
    }
    Status pack_b(const KernelArgs&, void*, Stream) const override { return {}; }

private:
    const NullDevice& device_;
    LaunchPlan plan_;
};

class NullRecording final : public Recording {
public:
    NullRecording(RecordedWork work, std::int64_t calls) : work_(std::move(work)), calls_(calls) {}

    Result<double> replay() override {
        for (std::int64_t i = 0; i < calls_; ++i) {
            if (auto status = work_(kDefaultStream, i); !status) return status.error();
        }
        constexpr double kSecondsEach = 1e-3;  // all kernels are equal here
        return static_cast<double>(calls_) * kSecondsEach;
    }

private:
    RecordedWork work_;
    std::int64_t calls_;
};

}  // namespace

Result<void*> NullDevice::allocate(std::size_t bytes) {
    if (void* const memory = allocate_host(bytes, alignof(std::max_align_t))) return memory;
    return device_error(fmt::format("cannot allocate {} bytes", bytes));
}

void NullDevice::release(void* memory) { std::free(memory); }

Status NullDevice::copy(void* to, const void* from, std::size_t bytes, Stream) {
    std::memcpy(to, from, bytes);
    return {};
}

Status NullDevice::copy_rows(const RowCopy& copy, Stream) { return copy_host_rows(copy, 1), Status(); }

Status NullDevice::clear_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows, Stream) {
    return clear_host_rows(memory, pitch, row_bytes, rows, 1), Status();
}

Result<std::unique_ptr<Recording>> NullDevice::record(const RecordedWork& work, std::int64_t calls) {
    return std::unique_ptr<Recording>(std::make_unique<NullRecording>(work, calls));
}

Result<std::shared_ptr<const Code>> NullDevice::load(const BuiltKernel&) {
    return std::shared_ptr<const Code>(std::make_shared<NullCode>());
}

Result<std::unique_ptr<const Launch>> NullDevice::prepare(std::shared_ptr<const Code>, const KernelArgs&,
                                                          LaunchPlan plan) {
    return std::unique_ptr<const Launch>(std::make_unique<PreparedNullLaunch>(*this, std::move(plan)));
}

}  // namespace tilewise
