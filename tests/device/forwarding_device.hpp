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
    std::optional<Rejected> refuses(const KernelConfig& config) const override { return device_.refuses(config); }

    Result<void*> allocate(std::size_t bytes) override { return device_.allocate(bytes); }
    void release(void* memory) override { device_.release(memory); }
    Status copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
        return device_.copy(to, from, bytes, stream);
    }
    Status synchronize(Stream stream) override { return device_.synchronize(stream); }

    Result<std::shared_ptr<const Code>> load(const BuiltKernel& kernel) override { return device_.load(kernel); }
    Status reserve(const Code& code, const KernelArgs& args, const LaunchGeometry& geometry) override {
        return device_.reserve(code, args, geometry);
    }
    Status launch(const Code& code, const KernelArgs& args, const LaunchGeometry& geometry, Stream stream) override {
        return device_.launch(code, args, geometry, stream);
    }
    Status pack_b(const Code& code, const KernelArgs& args, const LaunchGeometry& geometry, void* packed,
                  Stream stream) override {
        return device_.pack_b(code, args, geometry, packed, stream);
    }

private:
    Device& device_;
};

}  // namespace tilewise
