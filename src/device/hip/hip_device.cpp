// SPDX-License-Identifier: MIT
#include "device/hip/hip_device.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "build/amdgpu_object.hpp"
#include "build/toolchain_error.hpp"
#include "device/device_error.hpp"
#include "device/gpu/gpu_code.hpp"
#include "device/gpu/gpu_device.hpp"
#include "device/hip/runtime.hpp"

namespace tilewise {
namespace {

using namespace hip_runtime;

using HipCode = GpuCode<Runtime>;

class HipLaunch final : public Launch {
public:
    HipLaunch(const Runtime& runtime, int device, std::shared_ptr<const HipCode> code, GpuGrid grid)
        : runtime_(runtime), device_(device), code_(std::move(code)), grid_(grid) {}

    auto launcher(const KernelArgs& args, Stream stream) const {
        return [this, &args, stream](HipFunction function, const GpuStep& step) {
            void* parameters[] = {const_cast<KernelArgs*>(&args)};
            const auto size = [](auto number) { return static_cast<unsigned>(number); };
            return runtime_.check(
                runtime_.launch_kernel(function, size(step.blocks), 1, 1, size(step.threads), 1, 1,
                                       size(step.shared_bytes), static_cast<HipStream>(stream), parameters, nullptr),
                "ModuleLaunchKernel");
        };
    }

    Status run(const KernelArgs& args, Stream stream) const override {
        const ContextScope scope(runtime_, device_);
        return launch_steps(code_->functions(), grid_, launcher(args, stream));
    }
    Status pack_b(const KernelArgs& args, void* packed, Stream stream) const override {
        const ContextScope scope(runtime_, device_);
        KernelArgs to = args;
        to.workspace = packed;
        return launch_pack_b(code_->functions(), grid_, launcher(to, stream));
    }

private:
    const Runtime& runtime_;
    int device_;
    std::shared_ptr<const HipCode> code_;
    GpuGrid grid_;
};

class HipDevice final : public GpuDevice<Runtime> {
public:
    using GpuDevice::GpuDevice;

    std::optional<int> driver_version() const override { return std::nullopt; }
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code> code, const KernelArgs&,
                                                  LaunchPlan plan) override {
        auto own = std::static_pointer_cast<const HipCode>(std::move(code));
        GpuGrid grid = std::get<GpuGrid>(std::move(plan.share));
        if (auto status = check_functions(own->functions(), grid); !status) return status.error();
        return std::unique_ptr<const Launch>(std::make_unique<HipLaunch>(driver_, context_, std::move(own), grid));
    }

private:
    // The runtime's word about an object that does not fit is a number, so it is looked at before.
    Result<std::shared_ptr<const Code>> load_image(const std::string& image, const std::string& kernel) override {
        if (auto status = check_amdgpu_object(image, arch().name); !status) {
            return toolchain_error(fmt::format("kernel {} is not loaded on {}, which is {}: {}", kernel, name(),
                                               arch().name, status.error().message));
        }
        return load_gpu_code<HipCode>(driver_, context_, image, kernel);
    }
};

struct HipGpu {
    char model[256] = {};
    std::string arch;
};

Result<HipGpu> look_at(const Runtime& runtime, int ordinal) {
    HipGpu gpu;
    auto status = runtime.check(runtime.device_get_name(gpu.model, sizeof gpu.model - 1, ordinal), "DeviceGetName");
    if (!status) return status.error();
    auto name = runtime.arch_name(ordinal);
    if (!name) return name.error();
    gpu.arch = std::move(*name);
    return gpu;
}

// No other arch stands in: instructions, registers and shared memory differ.
Result<const ArchSpec*> arch_of(const ArchCatalog& catalog, const HipGpu& gpu, int ordinal) {
    std::string there;
    for (const ArchSpec& arch : catalog.archs()) {
        if (arch.backend != Backend::hip) continue;
        if (arch.name == gpu.arch) return &arch;
        there += fmt::format("{}{}", there.empty() ? "" : ", ", arch.name);
    }
    return device_error(fmt::format("no device hip:{}: this GPU ({}) is {}, for which there is no arch; there are {}",
                                    ordinal, gpu.model, gpu.arch, there));
}

// The catalog's arch with the numbers of this very device.
Result<ArchSpec> measured(const Runtime& runtime, const ArchSpec& arch, int ordinal) {
    int units = 0, cache_bytes = 0, shared_bytes = 0, wave_size = 0;
    const auto attribute = [&](int& value, HipAttribute which) {
        return runtime.check(runtime.device_get_attribute(&value, which, ordinal), "DeviceGetAttribute");
    };
    auto status = attribute(units, kMultiprocessorCount);
    if (status) status = attribute(cache_bytes, kL2CacheBytes);
    if (status) status = attribute(shared_bytes, kSharedBytesPerBlock);
    if (status) status = attribute(wave_size, kWaveSize);
    if (!status) return status.error();
    if (wave_size != arch.wave_size) {
        return device_error(fmt::format("no device hip:{}: its waves have {} lanes, those of {} have {}", ordinal,
                                        wave_size, arch.name, arch.wave_size));
    }
    ArchSpec own = arch;
    own.units = units;
    // The runtime tells of the second level alone; a chip may have a third, which the catalog knows.
    own.cache_bytes = std::max<std::int64_t>(own.cache_bytes, cache_bytes);
    own.shared_bytes = std::min<std::int64_t>(own.shared_bytes, shared_bytes);
    return own;
}

}  // namespace

Result<std::unique_ptr<Device>> make_hip_device(const ArchCatalog& catalog, int ordinal) {
    const auto loaded = load_runtime();
    if (!loaded) return device_error(fmt::format("no device hip:{}: {}", ordinal, loaded.error().message));
    const Runtime& runtime = **loaded;
    if (ordinal < 0 || ordinal >= runtime.devices) {
        return device_error(fmt::format("no device hip:{}: this machine has {} AMD GPUs, says {}", ordinal,
                                        runtime.devices, runtime.file));
    }
    const auto gpu = look_at(runtime, ordinal);
    if (!gpu) return gpu.error();
    const auto arch = arch_of(catalog, *gpu, ordinal);
    if (!arch) return arch.error();
    auto own = measured(runtime, **arch, ordinal);
    if (!own) return own.error();
    return std::unique_ptr<Device>(std::make_unique<HipDevice>(runtime, ordinal, std::move(*own), ordinal, gpu->model));
}

Result<GpuList> list_hip_gpus() {
    const auto loaded = load_runtime();
    if (!loaded) return loaded.error();
    const Runtime& runtime = **loaded;
    GpuList list{fmt::format("{} ({})", runtime.description(), runtime.file), {}};
    for (int i = 0; i < runtime.devices; ++i) {
        const auto gpu = look_at(runtime, i);
        if (!gpu) return gpu.error();
        list.gpus.push_back(fmt::format("hip:{}: {}, {}", i, gpu->model, gpu->arch));
    }
    return list;
}

}  // namespace tilewise
