// SPDX-License-Identifier: MIT
// What a backend is: memory, streams, events, loading a built kernel, launching it. Everything above (run, measure,
// select) speaks to this interface only. Calls are safe from any thread. A launch allocates nothing and, on a GPU, does
// not wait.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rejected.hpp"
#include "base/result.hpp"
#include "build/builder.hpp"
#include "config/arch_spec.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {

// A queue of work on a device; the CPU has none and works at once.
using Stream = void*;
inline constexpr Stream kDefaultStream = nullptr;

// How a launch is spread over the device, fixed when an executable is prepared.
struct LaunchGeometry {
    std::vector<KernelPart> parts;         // CPU: what each task computes
    std::vector<KernelPart> reduce_parts;  // CPU, split-K: what each task adds up afterwards
    int threads = 1;
};

// A built kernel, loaded. Belongs to the device that loaded it.
class Code {
public:
    virtual ~Code() = default;
    // Bytes of B in the kernel's packed form, 0 for a kernel that reads B as it is.
    virtual std::int64_t packed_b_bytes(const KernelArgs& args) const = 0;
};

class Device {
public:
    virtual ~Device() = default;

    virtual const std::string& name() const = 0;      // "cpu", "cuda:0", "null"
    virtual const std::string& identity() const = 0;  // the model and what it runs with, for tuning records
    virtual const ArchSpec& arch() const = 0;
    virtual int max_threads() const = 0;
    // Why this very device cannot run the kernel although its arch could (a CPU without an optional feature).
    virtual std::optional<Rejected> refuses(const KernelConfig& config) const = 0;

    virtual Result<void*> allocate(std::size_t bytes) = 0;
    virtual void release(void* memory) = 0;
    virtual Status copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
    virtual Status synchronize(Stream stream) = 0;

    virtual Result<std::shared_ptr<const Code>> load(const BuiltKernel& kernel) = 0;
    // Makes sure that launches of this code and geometry find the scratch memory they need.
    virtual Status reserve(const Code& code, const KernelArgs& args, const LaunchGeometry& geometry) = 0;
    virtual Status launch(const Code& code, const KernelArgs& args, const LaunchGeometry& geometry, Stream stream) = 0;
    virtual Status pack_b(const Code& code, const KernelArgs& args, const LaunchGeometry& geometry, void* packed,
                          Stream stream) = 0;
};

}  // namespace tilewise
