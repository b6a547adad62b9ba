// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_device.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "config/cuda_arch.hpp"
#include "config/geometry.hpp"
#include "device/cuda/cuda_launch.hpp"
#include "device/cuda/driver.hpp"
#include "device/device_error.hpp"
#include "device/gpu/gpu_device.hpp"

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

class CudaDevice final : public GpuDevice<Driver> {
public:
    CudaDevice(const Driver& driver, CUcontext context, ArchSpec arch, std::string_view code_suffix, int ordinal,
               const std::string& model, int clock_khz)
        : GpuDevice(driver, context, std::move(arch), ordinal, model), code_suffix_(code_suffix) {
        if (clock_khz > 0) clock_mhz_ = clock_khz / 1e3;
    }

    std::optional<int> driver_version() const override { return driver_.version; }
    std::optional<double> clock_mhz() const override { return clock_mhz_; }
    std::string_view code_suffix() const override { return code_suffix_; }
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs& args,
                                                  LaunchPlan plan) override {
        return prepare_cuda_launch(driver_, context_, std::move(code), args, std::get<GpuGrid>(std::move(plan.share)),
                                   waits_for_others_);
    }

private:
    Result<std::shared_ptr<const Code>> load_image(const std::string& image, const std::string& kernel) override {
        return load_cuda_code(driver_, context_, image, kernel);
    }

    std::string_view code_suffix_;
    // Kernels for compute capability 9.0 and later wait, by themselves, for those before them.
    bool waits_for_others_ = parse_cuda_arch(arch().name)->major >= 9;
    std::optional<double> clock_mhz_;
};

}  // namespace

Result<std::unique_ptr<Device>> make_cuda_device(const ArchCatalog& catalog, int ordinal) {
    auto loaded = load_driver();
    if (!loaded) return device_error(fmt::format("no device cuda:{}: {}", ordinal, loaded.error().message));
    const Driver& driver = **loaded;
    int count = 0;
    if (auto status = driver.check(driver.device_get_count(&count), "DeviceGetCount"); !status) return status.error();
    if (ordinal < 0 || ordinal >= count) {
        return device_error(fmt::format("no device cuda:{}: this machine has {} NVIDIA GPUs", ordinal, count));
    }
    CUdevice device = 0;
    char model[128] = {};
    int major = 0, minor = 0, units = 0, cache_bytes = 0, shared_bytes = 0, fp64_ratio = 0, clock_khz = 0;
    CUcontext context = nullptr;
    const auto attribute = [&](int& value, CUdeviceAttribute which) {
        return driver.check(driver.device_get_attribute(&value, which, device), "DeviceGetAttribute");
    };
    auto status = driver.check(driver.device_get(&device, ordinal), "DeviceGet");
    if (status) status = driver.check(driver.device_get_name(model, sizeof model - 1, device), "DeviceGetName");
    if (status) status = attribute(major, kComputeMajor);
    if (status) status = attribute(minor, kComputeMinor);
    if (status) status = attribute(units, kMultiprocessorCount);
    if (status) status = attribute(cache_bytes, kL2CacheBytes);
    if (status) status = attribute(shared_bytes, kSharedBytesPerBlockOptin);
    if (status) status = attribute(fp64_ratio, kSingleToDoubleRatio);
    if (status) status = attribute(clock_khz, kClockKilohertz);
    // Never given back: other libraries use the same one, and it ends with the process.
    if (status) status = driver.check(driver.primary_context_retain(&context, device), "DevicePrimaryCtxRetain");
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

Result<GpuList> list_cuda_gpus() {
    const auto loaded = load_driver();
    if (!loaded) return loaded.error();
    const Driver& driver = **loaded;
    GpuList list{fmt::format("CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10), {}};
    int count = 0;
    if (auto status = driver.check(driver.device_get_count(&count), "DeviceGetCount"); !status) return status.error();
    for (int i = 0; i < count; ++i) {
        CUdevice device = 0;
        char model[128] = {};
        int major = 0, minor = 0;
        auto status = driver.check(driver.device_get(&device, i), "DeviceGet");
        if (status) status = driver.check(driver.device_get_name(model, sizeof model - 1, device), "DeviceGetName");
        if (!status) return status.error();
        driver.device_get_attribute(&major, kComputeMajor, device);
        driver.device_get_attribute(&minor, kComputeMinor, device);
        list.gpus.push_back(fmt::format("cuda:{}: {}, compute capability {}.{}", i, model, major, minor));
    }
    return list;
}

}  // namespace tilewise
