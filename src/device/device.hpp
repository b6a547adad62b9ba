// SPDX-License-Identifier: MIT
// A device is what a backend drives: memory, streams, recordings (for timing), loading a built kernel, launching it. Everything above
// (run, measure, select) speaks to this interface only. Calls are safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rejected.hpp"
#include "base/result.hpp"
#include "build/builder.hpp"
#include "build/code_suffix.hpp"
#include "config/arch_spec.hpp"
#include "family/launch_plan.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {

// A queue of work on a device; the CPU has none and works at once.
using Stream = void*;
inline constexpr Stream kDefaultStream = nullptr;

// Rows of bytes that are copied within a device, in blocks: row j of block i begins at i * block_pitch + j * row_pitch.
// Rows that are read may overlap, as matrices of a batch may.
struct RowCopy {
    void* to = nullptr;
    const void* from = nullptr;
    std::int64_t row_bytes = 0, rows = 1, blocks = 1;
    std::int64_t to_row_pitch = 0, to_block_pitch = 0;
    std::int64_t from_row_pitch = 0, from_block_pitch = 0;
};

// A built kernel, loaded. Belongs to the device that loaded it.
class Code {
public:
    virtual ~Code() = default;
    // Bytes of B in the kernel's packed form, 0 for a kernel that reads B as it is.
    virtual std::int64_t packed_b_bytes(const KernelArgs& args) const = 0;
};

// A kernel made ready for one problem: all that can be worked out before the pointers are known. Belongs to the device
// that prepared it; runs from any thread, allocates nothing and, on a GPU, does not wait.
class Launch {
public:
    virtual ~Launch() = default;
    virtual Status run(const KernelArgs& args, Stream stream) const = 0;
    // Writes B in the form that the kernel reads.
    virtual Status pack_b(const KernelArgs& args, void* packed, Stream stream) const = 0;
};

// Work that the device repeats without the host in between. What it uses must outlive it.
class Recording {
public:
    virtual ~Recording() = default;
    virtual Result<double> replay() = 0;  // seconds, by the device's clock
};
// Puts the i-th call into the stream.
using RecordedWork = std::function<Status(Stream stream, std::int64_t i)>;

class Device {
public:
    virtual ~Device() = default;

    virtual const std::string& name() const = 0;      // "cpu", "cuda:0", "null"
    virtual const std::string& identity() const = 0;  // the model and what it runs with, for tuning records
    virtual const ArchSpec& arch() const = 0;
    virtual int max_threads() const = 0;
    // The newest toolkit version whose code the device's driver loads, as CUDA counts it (13000); unset: no such limit.
    virtual std::optional<int> driver_version() const = 0;
    // Its clock now or, where that cannot be asked, the highest it has; unset: neither is known.
    virtual std::optional<double> clock_mhz() const { return std::nullopt; }
    // The kind of code it loads, one of code_suffixes(arch()).
    virtual std::string_view code_suffix() const { return code_suffixes(arch()).front(); }
    // Why this very device cannot run the kernel although its arch could (a CPU without an optional feature).
    virtual std::optional<Rejected> refuses(const KernelConfig& config) const = 0;

    // Memory that kernels can use, of the device; zero bytes are allowed. Touched where that matters for the first use.
    virtual Result<void*> allocate(std::size_t bytes) = 0;
    virtual void release(void* memory) = 0;
    // Whether kernels read and write ordinary host memory, so that nothing needs to be copied.
    virtual bool shares_host_memory() const = 0;
    // From or to the host or within the device, in the order of the stream; done when it returns for host memory.
    virtual Status copy(void* to, const void* from, std::size_t bytes, Stream stream) = 0;
    // Within the device, in the order of the stream; allocates nothing, and on a GPU does not wait and can be captured.
    virtual Status copy_rows(const RowCopy& copy, Stream stream) = 0;
    // Sets so many bytes at the start of each row to zero, likewise.
    virtual Status clear_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows,
                              Stream stream) = 0;
    virtual Status synchronize(Stream stream) = 0;
    // Whether work put into the stream is recorded by the program instead of run; then nothing may be measured.
    virtual bool is_capturing(Stream stream) const = 0;
    // The work of so many calls, to be timed as one.
    virtual Result<std::unique_ptr<Recording>> record(const RecordedWork& work, std::int64_t calls) = 0;

    virtual Result<std::shared_ptr<const Code>> load(const BuiltKernel& kernel) = 0;
    virtual Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs& args,
                                                          LaunchPlan plan) = 0;
};

}  // namespace tilewise
