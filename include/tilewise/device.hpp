// SPDX-License-Identifier: MIT
// A device with what was built, loaded and chosen for it, and memory of it. Copies of a Device share one context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tilewise/error.hpp"

namespace tilewise {

struct DeviceOptions {
    std::string arch;                // empty: that of the device
    int threads = 0;                 // of the CPU; 0: every CPU this process may use
    std::vector<std::string> packs;  // of built kernels, besides those of the environment
};

class Device {
public:
    // "cpu", "cuda:0", "hip:0"
    static Result<Device> open(const std::string& name, const DeviceOptions& options = {}) {
        tilewise_context_options from{};
        from.size = sizeof(from);
        from.arch = options.arch.empty() ? nullptr : options.arch.c_str();
        from.threads = options.threads;
        tilewise_context* made = nullptr;
        const tilewise_status code = tilewise_context_create(name.c_str(), &from, &made);
        if (code != TILEWISE_OK) return Error::last(code);
        Device device(made);
        for (const std::string& pack : options.packs) {
            if (auto status = device.load_pack(pack); !status) return status.error();
        }
        return device;
    }

    std::string arch() const { return tilewise_context_arch(get()); }
    // {"device", "identity", "arch", "backend", "threads", "shares_host_memory", "tuning"}
    Result<std::string> describe() const {
        return detail::text_of([&](char** out) { return tilewise_context_describe(get(), out); });
    }

    // For what is prepared from now on.
    Status load_pack(const std::string& path) { return Status::of(tilewise_load_pack(get(), path.c_str())); }
    Status load_models(const std::string& directory) {
        return Status::of(tilewise_load_models(get(), directory.c_str()));
    }
    Result<std::int64_t> load_tuning(const std::string& path) {
        std::int64_t count = 0;
        const tilewise_status code = tilewise_load_tuning(get(), path.c_str(), &count);
        if (code != TILEWISE_OK) return Error::last(code);
        return count;
    }

    // Waits until everything in the stream is done.
    Status synchronize(void* stream = nullptr) const { return Status::of(tilewise_synchronize(get(), stream)); }

    tilewise_context* get() const { return handle_.get(); }

private:
    explicit Device(tilewise_context* handle) : handle_(handle, tilewise_context_destroy) {}

    std::shared_ptr<tilewise_context> handle_;
};

// Memory of a device, given back with it.
class Buffer {
public:
    static Result<Buffer> make(const Device& device, std::size_t bytes) {
        void* memory = nullptr;
        const tilewise_status code = tilewise_allocate(device.get(), bytes, &memory);
        if (code != TILEWISE_OK) return Error::last(code);
        return Buffer(device, memory, bytes);
    }
    // With what is in the host's memory.
    template <class T>
    static Result<Buffer> of(const Device& device, const std::vector<T>& values) {
        auto made = make(device, values.size() * sizeof(T));
        if (!made) return made;
        if (auto status = made->write(values); !status) return status.error();
        return made;
    }

    Buffer(Buffer&& other) noexcept
        : device_(other.device_), memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(device_, other.device_), std::swap(memory_, other.memory_), std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Buffer() {
        if (memory_) static_cast<void>(tilewise_release(device_.get(), memory_));
    }

    void* data() const { return memory_; }
    std::size_t bytes() const { return bytes_; }

    template <class T>
    Status write(const std::vector<T>& values) {
        return copy(memory_, values.data(), values.size() * sizeof(T));
    }
    template <class T>
    Status read(std::vector<T>& values) const {
        return copy(values.data(), memory_, values.size() * sizeof(T));
    }

private:
    Buffer(Device device, void* memory, std::size_t bytes)
        : device_(std::move(device)), memory_(memory), bytes_(bytes) {}

    Status copy(void* to, const void* from, std::size_t bytes) const {
        if (bytes > bytes_) return Error{TILEWISE_USAGE, "the buffer is smaller than the vector"};
        return Status::of(tilewise_copy(device_.get(), to, from, bytes, nullptr));
    }

    Device device_;
    void* memory_;
    std::size_t bytes_;
};

}  // namespace tilewise
