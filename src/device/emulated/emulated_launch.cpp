// SPDX-License-Identifier: MIT
#include "device/emulated/emulated_launch.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>

#include "build/checked_code.hpp"
#include "device/device_error.hpp"
#include "device/emulated/calls.hpp"
#include "device/emulated/grid.hpp"
#include "device/gpu/gpu_functions.hpp"

namespace tilewise {
namespace {

class EmulatedCode final : public Code {
public:
    explicit EmulatedCode(void* handle)
        : functions{dlsym(handle, kKernelSymbol), dlsym(handle, kReduceSymbol), dlsym(handle, kPackSymbol),
                    dlsym(handle, kPackBSymbol)},
          machine(static_cast<Machine**>(dlsym(handle, "tilewise_machine"))),
          handle_(handle) {}
    ~EmulatedCode() override { dlclose(handle_); }
    EmulatedCode(const EmulatedCode&) = delete;
    EmulatedCode& operator=(const EmulatedCode&) = delete;

    std::int64_t packed_b_bytes(const KernelArgs&) const override { return 0; }

    const GpuFunctions<void*> functions;
    Machine** const machine;

private:
    void* handle_;
};

// A kernel's function and what each of its threads is called with.
struct BoundKernel {
    void* function;
    const KernelArgs* args;
    const EmulatedTensorMap* maps;  // three, or null
};

void call_kernel(const void* kernel) {
    const auto& bound = *static_cast<const BoundKernel*>(kernel);
    using Maps = EmulatedTensorMap;
    if (bound.maps) {
        const auto* maps = bound.maps;
        reinterpret_cast<void (*)(KernelArgs, Maps, Maps, Maps)>(bound.function)(*bound.args, maps[0], maps[1],
                                                                                 maps[2]);
    } else {
        reinterpret_cast<void (*)(KernelArgs)>(bound.function)(*bound.args);
    }
}

// The second dimension is that of the pixels: as many as an image has, between the channels and the images.
void walk_pixels(EmulatedTensorMap& map, const Im2colSpec& im2col) {
    const Index images = map.size[2], image_stride = map.stride_bytes[2];
    Index stride = map.stride_bytes[1];
    map.pixels = map.box[1];
    for (int i = 0; i < im2col.dims; ++i) {
        const auto from = static_cast<std::size_t>(i);
        map.size[i + 1] = im2col.size[from], map.stride_bytes[i + 1] = stride, map.box[i + 1] = 1;
        map.lower[i] = static_cast<int>(im2col.lower[from]), map.upper[i] = static_cast<int>(im2col.upper[from]);
        map.step[i] = static_cast<int>(im2col.step[from]);
        stride *= im2col.size[from];
    }
    map.dims = im2col.dims + 2;
    map.size[im2col.dims + 1] = images, map.stride_bytes[im2col.dims + 1] = image_stride;
}

void box_pixels(EmulatedTensorMap& map, const PixelBoxSpec& pixels) {
    const Index images = map.size[2], image_stride = map.stride_bytes[2];
    Index stride = map.stride_bytes[1];
    for (std::size_t i = 0; i < pixels.size.size(); ++i) {
        map.size[i + 1] = pixels.size[i], map.stride_bytes[i + 1] = stride, map.box[i + 1] = pixels.box[i];
        stride *= pixels.size[i];
    }
    map.step[0] = pixels.step;
    map.dims = kMaxTensorDims;
    map.size[kMaxTensorDims - 1] = images, map.stride_bytes[kMaxTensorDims - 1] = image_stride;
    map.box[kMaxTensorDims - 1] = pixels.images;
}

// This refuses what the driver of a GPU would refuse.
Result<EmulatedTensorMap> encode(const TensorMapSpec& spec) {
    EmulatedTensorMap map{};
    map.dims = static_cast<int>(spec.size.size());
    map.element_bytes = static_cast<int>(bytes_of(spec.dtype));
    map.stride_bytes[0] = map.element_bytes;
    for (std::size_t i = 0; i < spec.size.size(); ++i) map.size[i] = spec.size[i];
    for (std::size_t i = 0; i < spec.stride_bytes.size(); ++i) {
        map.stride_bytes[i + 1] = spec.stride_bytes[i];
        if (spec.stride_bytes[i] % 16 != 0) {
            return device_error(
                fmt::format("a tensor map with a stride of {} bytes; need multiples of 16", spec.stride_bytes[i]));
        }
    }
    map.box[0] = spec.box.columns, map.box[1] = spec.box.rows, map.box[2] = 1;
    const int most_lines = spec.im2col ? 1024 : 256;
    constexpr int kMostColumns = 256;
    if (spec.box.columns > kMostColumns || spec.box.rows > most_lines) {
        return device_error(fmt::format("a box of {} lines of {}; need at most {} of {}", spec.box.rows,
                                        spec.box.columns, most_lines, kMostColumns));
    }
    if (spec.im2col) walk_pixels(map, *spec.im2col);
    if (spec.pixels) box_pixels(map, *spec.pixels);
    const int line = map.box[0] * map.element_bytes;
    map.swizzle_bytes = line == 128 || line == 64 || line == 32 ? line : 0;
    return map;
}

class EmulatedLaunch final : public Launch {
public:
    EmulatedLaunch(std::shared_ptr<EmulatedMachine> machine, std::shared_ptr<const EmulatedCode> code, GpuGrid grid)
        : machine_(std::move(machine)), code_(std::move(code)), grid_(grid) {}

    Status encode_maps() {
        for (std::size_t i = 0; grid_.tensor_maps && i < grid_.tensor_maps->size(); ++i) {
            if ((*grid_.tensor_maps)[i].box.rows == 0) continue;  // an operand the kernel takes no map for
            auto map = encode((*grid_.tensor_maps)[i]);
            if (!map) return map.error();
            maps_[i] = *map;
        }
        return {};
    }

    Status run(const KernelArgs& args, Stream) const override {
        const std::scoped_lock lock(emulated_launches());
        auto maps = maps_;
        void* const address[3] = {args.a.data, args.b.data, args.c.data};
        for (std::size_t i = 0; grid_.tensor_maps && i < grid_.tensor_maps->size(); ++i) {
            if ((*grid_.tensor_maps)[i].box.rows == 0) continue;
            const auto& packed = (*grid_.tensor_maps)[i].workspace_offset;
            maps[i].data = static_cast<unsigned char*>(packed ? args.workspace
                                                              : address[(*grid_.tensor_maps)[i].operand.value_or(i)]) +
                           packed.value_or(0);
        }
        return launch_steps(code_->functions, grid_, [&](void* function, const GpuStep& step) {
            const bool takes_maps = grid_.tensor_maps && function == code_->functions.kernel;
            return launch(step, {function, &args, takes_maps ? maps.data() : nullptr});
        });
    }

    Status pack_b(const KernelArgs& args, void* packed, Stream) const override {
        const std::scoped_lock lock(emulated_launches());
        KernelArgs to = args;
        to.workspace = packed;
        return launch_pack_b(code_->functions, grid_, [&](void* function, const GpuStep& step) {
            return launch(step, {function, &to, nullptr});
        });
    }

private:
    Status launch(const GpuStep& step, const BoundKernel& kernel) const {
        Machine calls = emulated::machine_calls();
        *code_->machine = &calls;
        emulated::GridSpec grid;
        grid.blocks = static_cast<unsigned>(step.blocks), grid.threads = step.threads;
        grid.shared_bytes = static_cast<unsigned>(step.shared_bytes);
        grid.cluster = static_cast<unsigned>(std::max(1, step.cluster.m * step.cluster.n));
        grid.seed = machine_->seed++;
        grid.lanes = machine_->lanes;
        grid.flushes_subnormals = machine_->flushes_subnormals;
        grid.call = call_kernel;
        grid.kernel = &kernel;
        return emulated::Grid(grid, calls, machine_->stacks, machine_->memory).run();
    }

    std::shared_ptr<EmulatedMachine> machine_;
    std::shared_ptr<const EmulatedCode> code_;
    GpuGrid grid_;
    std::array<EmulatedTensorMap, 3> maps_{};
};

}  // namespace

std::mutex& emulated_launches() {
    static std::mutex mutex;
    return mutex;
}

Result<std::shared_ptr<const Code>> load_emulated_code(const BuiltKernel& kernel) {
    const auto checked = CheckedCode::open(kernel);
    if (!checked) return checked.error();
    void* const handle = dlopen(checked->path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char* why = dlerror();
        return device_error(fmt::format("cannot load '{}': {}", kernel.path, why ? why : "no reason given"));
    }
    auto code = std::make_shared<EmulatedCode>(handle);
    if (!code->functions.kernel || !code->machine) {
        return device_error(fmt::format("'{}' is no emulated kernel: it has no {}", kernel.path, kKernelSymbol));
    }
    return std::shared_ptr<const Code>(std::move(code));
}

Result<std::unique_ptr<const Launch>> prepare_emulated_launch(std::shared_ptr<EmulatedMachine> machine,
                                                              std::shared_ptr<const Code> code, GpuGrid grid) {
    auto own = std::static_pointer_cast<const EmulatedCode>(std::move(code));
    if (auto status = check_functions(own->functions, grid); !status) return status.error();
    auto launch = std::make_unique<EmulatedLaunch>(std::move(machine), std::move(own), grid);
    if (auto status = launch->encode_maps(); !status) return status.error();
    return std::unique_ptr<const Launch>(std::move(launch));
}

}  // namespace tilewise
