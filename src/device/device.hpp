// SPDX-License-Identifier: MIT
// What a backend is: memory, streams, recordings (for timing), loading a built kernel, launching it. Everything above
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
#include "family/launch_spec.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {

// A queue of work on a device; the CPU has none and works at once.
using Stream = void*;
inline constexpr Stream kDefaultStream = nullptr;

// How the copy engine walks over the pixels of an image, the innermost dimension first: from `lower` to the last pixel plus
// `upper`, in steps.
struct Im2colSpec {
    int dims = 2;
    std::array<std::int64_t, 3> size{}, lower{}, upper{}, step{};
};

// Boxes of pixels, the innermost dimension first, of `box` positions along each, and so many images.
struct PixelBoxSpec {
    std::array<std::int64_t, 3> size{};
    std::array<int, 3> box{};
    int step = 1;  // of the innermost one: every so many pixels of the box
    int images = 1;
};

// A tensor as the copy engine of a GPU sees it: lines of neighbouring elements, with the box that one copy moves. The
// pointer is patched in at every launch.
struct TensorMapSpec {
    DType dtype = DType::fp32;
    std::array<std::int64_t, 3> size{};          // elements along a line, lines, matrices
    std::array<std::int64_t, 2> stride_bytes{};  // between lines, between matrices
    TensorBox box;
    // Where lines are the channels of pixels, and matrices are images: copies walk over pixels as a filter's tap does.
    std::optional<Im2colSpec> im2col;
    // The same tensor, of which copies take boxes of pixels.
    std::optional<PixelBoxSpec> pixels;
    // Where in the workspace the tensor is, for an operand that is packed there before the kernel starts.
    std::optional<std::int64_t> workspace_offset;
    // Which operand it is of (A, B, C), where not of the one in whose place it is given.
    std::optional<std::size_t> operand;
};

// Rows of bytes that are copied within a device, in blocks: row j of block i begins at i * block_pitch + j * row_pitch.
// Rows that are read may overlap, as matrices of a batch may.
struct RowCopy {
    void* to = nullptr;
    const void* from = nullptr;
    std::int64_t row_bytes = 0, rows = 1, blocks = 1;
    std::int64_t to_row_pitch = 0, to_block_pitch = 0;
    std::int64_t from_row_pitch = 0, from_block_pitch = 0;
};

// How a launch is spread over the device, fixed when an executable is prepared.
struct LaunchGeometry {
    std::vector<KernelPart> expand_parts;  // CPU: what each task writes to the workspace beforehand, if anything
    std::vector<KernelPart> parts;         // CPU: what each task computes
    std::vector<KernelPart> reduce_parts;  // CPU: what each task adds up afterwards, if anything
    int threads = 1;

    LaunchSpec block;       // GPU: what one block is
    int blocks = 0;         // GPU: how many
    int reduce_blocks = 0;  // GPU, split-K: blocks of the kernel that adds up afterwards
    int reduce_threads = 0;
    int pack_blocks = 0;  // GPU: blocks of the kernel that packs operands first
    int pack_threads = 0;
    // GPU: of the kernel that packs B ahead, and what it writes; 0 for a kernel that reads B as it is.
    int pack_b_blocks = 0;
    int pack_b_threads = 0;
    std::int64_t pack_b_shared_bytes = 0;
    std::int64_t packed_b_bytes = 0;
    int raster_group = 1;           // GPU: tiles side by side in the order they are taken
    int split_k = 0;                // GPU: parts of the reduction, where the launch chose them
    std::array<int, 4> patch = {};  // GPU: output pixels of a block of a convolution that stages patches
    std::array<int, kMaxKernelGeometry> geometry = {};  // GPU: for the kernel, in its family's words
    std::vector<TensorMapSpec> tensor_maps;             // GPU: of A, B and C, where the kernel uses them
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
                                                          LaunchGeometry geometry) = 0;
};

}  // namespace tilewise
