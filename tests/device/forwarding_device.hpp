// SPDX-License-Identifier: MIT
// A device that hands every call on to another one: tests override the one in which they want something to go wrong.
#pragma once

#include "device/device.hpp"

namespace tilewise {

class ForwardingDevice : public Device {
public:
    explicit ForwardingDevice(Device& device) : device_(device) {}

    const std::string& name() const override { return device_.name(); }
    const std::string& identity() const override { return device_.identity(); }
    const ArchSpec& arch() const override { return device_.arch(); }
    int max_threads() const override { return device_.max_threads(); }
    std::optional<int> driver_version() const override { return device_.driver_version(); }
    std::string_view code_suffix() const override { return device_.code_suffix(); }
    std::optional<Rejected> refuses(const KernelConfig& config) const override { return device_.refuses(config); }

    Result<void*> allocate(std::size_t bytes) override { return device_.allocate(bytes); }
    void release(void* memory) override { device_.release(memory); }
    bool shares_host_memory() const override { return device_.shares_host_memory(); }
    Status copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
        return device_.copy(to, from, bytes, stream);
    }
    Status copy_rows(const RowCopy& copy, Stream stream) override { return device_.copy_rows(copy, stream); }
    Status clear_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows,
                      Stream stream) override {
        return device_.clear_rows(memory, pitch, row_bytes, rows, stream);
    }
    Status synchronize(Stream stream) override { return device_.synchronize(stream); }
    bool is_capturing(Stream stream) const override { return device_.is_capturing(stream); }
    Result<std::unique_ptr<Recording>> record(const RecordedWork& work, std::int64_t calls) override {
        return device_.record(work, calls);
    }

    Result<std::shared_ptr<const Code>> load(const BuiltKernel& kernel) override { return device_.load(kernel); }
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs& args,
                                                  LaunchPlan plan) override {
        return device_.prepare(std::move(code), args, std::move(plan));
    }

private:
    Device& device_;
};

}  // namespace tilewise
