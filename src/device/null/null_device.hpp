// SPDX-License-Identifier: MIT
// A device that runs nothing: it takes kernels of any arch, remembers what it was asked to launch, and is done at once. For
// tests of everything above a device, on a machine that has none.
#pragma once

#include <memory>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"

namespace tilewise {

struct NullLaunch {
    KernelArgs args;
    LaunchPlan plan;
    Stream stream;
};

class NullDevice final : public Device {
public:
    explicit NullDevice(const ArchSpec& arch) : arch_(arch), identity_("null; " + arch.name) {}

    const std::string& name() const override { return name_; }
    const std::string& identity() const override { return identity_; }
    const ArchSpec& arch() const override { return arch_; }
    int max_threads() const override { return 1; }
    std::optional<int> driver_version() const override { return std::nullopt; }
    std::optional<Rejected> refuses(const KernelConfig&) const override { return std::nullopt; }

    Result<void*> allocate(std::size_t bytes) override;
    void release(void* memory) override;
    bool shares_host_memory() const override { return true; }
    Status copy(void* to, const void* from, std::size_t bytes, Stream stream) override;
    Status copy_rows(const RowCopy& copy, Stream stream) override;
    Status clear_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows,
                      Stream stream) override;
    Status synchronize(Stream) override { return {}; }
    bool is_capturing(Stream stream) const override { return capturing && stream == capturing; }
    Result<std::unique_ptr<Recording>> record(const RecordedWork& work, std::int64_t calls) override;

    Result<std::shared_ptr<const Code>> load(const BuiltKernel& kernel) override;
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs& args,
                                                  LaunchPlan plan) override;

    mutable std::vector<NullLaunch> launches;  // in the order they came; one thread at a time
    Stream capturing = nullptr;                // a stream that says it is being captured

private:
    const ArchSpec& arch_;
    std::string name_ = "null";
    std::string identity_;
};

}  // namespace tilewise
