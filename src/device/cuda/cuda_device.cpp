// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_device.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "build/checked_code.hpp"
#include "config/cuda_arch.hpp"
#include "config/geometry.hpp"
#include "device/cuda/context_scope.hpp"
#include "device/cuda/cuda_launch.hpp"
#include "device/cuda/cuda_recording.hpp"
#include "device/cuda/cuda_rows.hpp"
#include "device/cuda/driver.hpp"
#include "device/device_error.hpp"

namespace tilewise {
namespace {

using namespace cuda_driver;

// sm_90a for 9.0; for a chip with no arch file of its own, the newest one whose code it can run.
Result<const ArchSpec*> arch_of(const ArchCatalog& catalog, int major, int minor) {
    const std::pair have(major, minor);
    const ArchSpec* best = nullptr;
    std::tuple<int, int, bool> best_rank;
    for (const ArchSpec& arch : catalog.archs()) {
        const auto cuda = arch.backend == Backend::cuda ? parse_cuda_arch(arch.name) : std::nullopt;
        if (!cuda) continue;
        const std::pair version(cuda->major, cuda->minor);
        const std::tuple rank(cuda->major, cuda->minor, cuda->one_chip);
        if (version > have || (cuda->one_chip && version != have) || (best && rank <= best_rank)) continue;
        best = &arch;
        best_rank = rank;
    }
    if (best) return best;
    return device_error(
        fmt::format("a GPU of compute capability {}.{}: there is no arch for it; need 8.0 or newer", major, minor));
}

// A cubin runs on chips of its arch's major version; for a later one the driver compiles PTX.
std::string_view loads(const ArchSpec& arch, int major) {
    return parse_cuda_arch(arch.name)->major == major ? kCubin : kPtx;
}

class CudaDevice final : public Device {
public:
    CudaDevice(const Driver& driver, CUcontext context, ArchSpec arch, std::string_view code_suffix, int ordinal,
               const std::string& model, int clock_khz)
        : driver_(driver),
          context_(context),
          arch_(std::move(arch)),
          code_suffix_(code_suffix),
          name_(fmt::format("cuda:{}", ordinal)) {
        if (clock_khz > 0) clock_mhz_ = clock_khz / 1e3;
        identity_ = fmt::format("{}; {}; {} units; driver {}.{}", model, arch_.name, arch_.units, driver.version / 1000,
                                driver.version % 1000 / 10);
    }

    const std::string& name() const override { return name_; }
    const std::string& identity() const override { return identity_; }
    const ArchSpec& arch() const override { return arch_; }
    int max_threads() const override { return 1; }
    std::optional<int> driver_version() const override { return driver_.version; }
    std::optional<double> clock_mhz() const override { return clock_mhz_; }
    std::string_view code_suffix() const override { return code_suffix_; }
    std::optional<Rejected> refuses(const KernelConfig&) const override { return std::nullopt; }
    bool shares_host_memory() const override { return false; }
    bool is_capturing(Stream stream) const override {
        const ContextScope scope(driver_, context_);
        CUcaptureStatus status = kCaptureNone;
        const auto code = driver_.stream_is_capturing(static_cast<CUstream>(stream), &status);
        // The default stream cannot tell while one that waits for it is captured; then it may not be used either.
        return code != kSuccess || status != kCaptureNone;
    }

    Result<void*> allocate(std::size_t bytes) override {
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        CUdeviceptr memory = 0;
        const auto code = driver_.mem_alloc(&memory, std::max<std::size_t>(bytes, 1));
        if (code != kSuccess) {
            return device_error(
                fmt::format("cannot allocate {} bytes: {}", bytes, driver_.failure("cuMemAlloc", code).message));
        }
        return reinterpret_cast<void*>(memory);
    }
    void release(void* memory) override {
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        driver_.mem_free(reinterpret_cast<CUdeviceptr>(memory));
    }
    Status copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
        if (bytes == 0) return {};
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        const auto on = static_cast<CUstream>(stream);
        auto status = driver_.check(
            driver_.memcpy_async(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, on),
            "cuMemcpyAsync");
        return status ? driver_.check(driver_.stream_synchronize(on), "cuStreamSynchronize") : status;
    }
    Status copy_rows(const RowCopy& copy, Stream stream) override {
        const ContextScope scope(driver_, context_);
        return copy_cuda_rows(driver_, copy, static_cast<CUstream>(stream));
    }
    Status clear_rows(void* memory, std::int64_t pitch, std::int64_t row_bytes, std::int64_t rows,
                      Stream stream) override {
        const ContextScope scope(driver_, context_);
        return clear_cuda_rows(driver_, memory, pitch, row_bytes, rows, static_cast<CUstream>(stream));
    }
    Status synchronize(Stream stream) override {
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        return driver_.check(driver_.stream_synchronize(static_cast<CUstream>(stream)), "cuStreamSynchronize");
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
        auto code = load_cuda_code(driver_, context_, checked->bytes(), built.manifest.kernel);
        if (!code) return code.error();
        const std::scoped_lock lock(codes_mutex_);
        return codes_.emplace(built.digest, std::move(*code)).first->second;
    }
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs& args,
                                                  LaunchPlan plan) override {
        return prepare_cuda_launch(driver_, context_, std::move(code), args, std::get<GpuGrid>(std::move(plan.share)),
                                   waits_for_others_);
    }

private:
    const Driver& driver_;
    CUcontext context_;
    ArchSpec arch_;
    std::string_view code_suffix_;
    // Kernels for compute capability 9.0 and later wait, by themselves, for those before them.
    bool waits_for_others_ = parse_cuda_arch(arch_.name)->major >= 9;
    std::string name_, identity_;
    std::optional<double> clock_mhz_;
    std::shared_ptr<RecordingQueue> recordings_ = std::make_shared<RecordingQueue>(driver_, context_);
    // One module for all problems of a kernel, for as long as the device: a graph that the program has captured may use it.
    std::mutex codes_mutex_;
    std::unordered_map<std::string, std::shared_ptr<const Code>> codes_;  // by digest
};

}  // namespace

Result<std::unique_ptr<Device>> make_cuda_device(const ArchCatalog& catalog, int ordinal) {
    auto loaded = load_driver();
    if (!loaded) return device_error(fmt::format("no device cuda:{}: {}", ordinal, loaded.error().message));
    const Driver& driver = **loaded;
    int count = 0;
    if (auto status = driver.check(driver.device_get_count(&count), "cuDeviceGetCount"); !status) return status.error();
    if (ordinal < 0 || ordinal >= count) {
        return device_error(fmt::format("no device cuda:{}: this machine has {} NVIDIA GPUs", ordinal, count));
    }
    CUdevice device = 0;
    char model[128] = {};
    int major = 0, minor = 0, units = 0, cache_bytes = 0, shared_bytes = 0, fp64_ratio = 0, clock_khz = 0;
    CUcontext context = nullptr;
    const auto attribute = [&](int& value, CUdeviceAttribute which) {
        return driver.check(driver.device_get_attribute(&value, which, device), "cuDeviceGetAttribute");
    };
    auto status = driver.check(driver.device_get(&device, ordinal), "cuDeviceGet");
    if (status) status = driver.check(driver.device_get_name(model, sizeof model - 1, device), "cuDeviceGetName");
    if (status) status = attribute(major, kComputeMajor);
    if (status) status = attribute(minor, kComputeMinor);
    if (status) status = attribute(units, kMultiprocessorCount);
    if (status) status = attribute(cache_bytes, kL2CacheBytes);
    if (status) status = attribute(shared_bytes, kSharedBytesPerBlockOptin);
    if (status) status = attribute(fp64_ratio, kSingleToDoubleRatio);
    if (status) status = attribute(clock_khz, kClockKilohertz);
    // Never given back: other libraries use the same one, and it ends with the process.
    if (status) status = driver.check(driver.primary_context_retain(&context, device), "cuDevicePrimaryCtxRetain");
    if (!status) return status.error();
    auto arch = arch_of(catalog, major, minor);
    if (!arch) return arch.error();
    ArchSpec own = **arch;
    own.units = units;
    own.cache_bytes = cache_bytes;
    own.shared_bytes = std::min<std::int64_t>(own.shared_bytes, shared_bytes);
    constexpr int kMostRatio = 2;  // where there are matrix units for fp64
    if (fp64_ratio > kMostRatio) leave_out_doubles(own);
    return std::unique_ptr<Device>(
        std::make_unique<CudaDevice>(driver, context, std::move(own), loads(**arch, major), ordinal, model, clock_khz));
}

}  // namespace tilewise
