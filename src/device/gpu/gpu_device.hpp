// SPDX-License-Identifier: MIT
// A GPU through its vendor's driver: all that drivers have alike. `Driver` is a table of the driver's functions, loaded when first asked
// for (start_once.hpp), with these names and the types of what they take; a vendor's device adds how code is loaded and launched.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "build/checked_code.hpp"
#include "device/device.hpp"
#include "device/device_error.hpp"
#include "device/gpu/gpu_recording.hpp"
#include "device/gpu/gpu_rows.hpp"
#include "device/gpu/gpu_scope.hpp"

namespace tilewise {

template <class Driver>
class GpuDevice : public Device {
public:
    using Context = typename Driver::Context;

    GpuDevice(const Driver& driver, Context context, ArchSpec arch, int ordinal, const std::string& model)
        : driver_(driver),
          context_(context),
          arch_(std::move(arch)),
          name_(fmt::format("{}:{}", name_of(arch_.backend), ordinal)),
          identity_(fmt::format("{}; {}; {} units; {}", model, arch_.name, arch_.units, driver.description())) {}

    const std::string& name() const override { return name_; }
    const std::string& identity() const override { return identity_; }
    const ArchSpec& arch() const override { return arch_; }
    int max_threads() const override { return 1; }
    std::optional<Rejected> refuses(const KernelConfig&) const override { return std::nullopt; }
    bool shares_host_memory() const override { return false; }
    bool is_capturing(Stream stream) const override {
        const ContextScope scope(driver_, context_);
        auto status = kCaptureNone;
        const auto code = driver_.stream_is_capturing(own(stream), &status);
        // The default stream cannot tell while one that waits for it is captured; then it may not be used either.
        return code != Driver::kSuccess || status != kCaptureNone;
    }

    Result<void*> allocate(std::size_t bytes) override {
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        void* memory = nullptr;
        const auto code = driver_.mem_alloc(&memory, std::max<std::size_t>(bytes, 1));
        if (code == Driver::kSuccess) return memory;
        return device_error(fmt::format("cannot allocate {} bytes: {}", bytes, driver_.reason(code)));
    }
    void release(void* memory) override {
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        driver_.mem_free(memory);
    }
    Status copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
        if (bytes == 0) return {};
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        auto status = driver_.check(driver_.copy_bytes(to, from, bytes, own(stream)), "MemcpyAsync");
        return status ? driver_.check(driver_.stream_synchronize(own(stream)), "StreamSynchronize") : status;
    }
    Status copy_rows(const RowCopy& copy, Stream stream) override {
        const ContextScope scope(driver_, context_);
        return copy_gpu_rows(driver_, copy, own(stream));
    }
    Status clear_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows,
                      Stream stream) override {
        const ContextScope scope(driver_, context_);
        return clear_gpu_rows(driver_, memory, pitch, row_bytes, rows, own(stream));
    }
    Status synchronize(Stream stream) override {
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        return driver_.check(driver_.stream_synchronize(own(stream)), "StreamSynchronize");
    }
    Result<std::unique_ptr<Recording>> record(const RecordedWork& work, std::int64_t calls) override {
        return record_graph(recordings_, work, calls);
    }

    Result<std::shared_ptr<const Code>> load(const BuiltKernel& built) override {
        {
            const std::scoped_lock lock(codes_mutex_);
            if (const auto found = codes_.find(built.digest); found != codes_.end()) return found->second;
        }
        const auto checked = CheckedCode::open(built);
        if (!checked) return checked.error();
        auto code = load_image(checked->bytes(), built.manifest.kernel);
        if (!code) return code.error();
        const std::scoped_lock lock(codes_mutex_);
        return codes_.emplace(built.digest, std::move(*code)).first->second;
    }

protected:
    // An error of the toolchain where it is no code for this GPU: then it is built again.
    virtual Result<std::shared_ptr<const Code>> load_image(const std::string& image, const std::string& kernel) = 0;

    const Driver& driver_;
    const Context context_;

private:
    static typename Driver::Stream own(Stream stream) { return static_cast<typename Driver::Stream>(stream); }

    ArchSpec arch_;
    std::string name_, identity_;
    std::shared_ptr<RecordingQueue<Driver>> recordings_ = std::make_shared<RecordingQueue<Driver>>(driver_, context_);
    // One module for all problems of a kernel, for as long as the device: a graph that the program has captured may use it.
    std::mutex codes_mutex_;
    std::unordered_map<std::string, std::shared_ptr<const Code>> codes_;  // by digest
};

}  // namespace tilewise
