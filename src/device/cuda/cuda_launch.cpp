// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_launch.hpp"

#include <fmt/core.h>

#include <mutex>

#include "device/device_error.hpp"
#include "device/gpu/gpu_code.hpp"
#include "kernels/common/to_int.hpp"

namespace tilewise {
namespace {

using namespace cuda_driver;

class CudaCode final : public GpuCode<Driver> {
public:
    using GpuCode::GpuCode;

    // Launches of several problems share the function, and each may need another size: what one was allowed must not be taken
    // back when the next is prepared.
    Status allow_shared_bytes(std::int64_t bytes) const {
        const std::lock_guard lock(mutex_);
        if (bytes <= allowed_shared_bytes_) return {};
        auto status =
            driver_.check(driver_.function_set_attribute(functions().kernel, kMaxDynamicSharedBytes, to_int(bytes)),
                          "FuncSetAttribute");
        if (status) allowed_shared_bytes_ = bytes;
        return status;
    }

private:
    mutable std::mutex mutex_;
    mutable std::int64_t allowed_shared_bytes_ = 0;
};

CUtensorMapDataType tensor_type(DType dtype) {
    switch (dtype) {
        case DType::fp32: return kTensorFloat32;
        case DType::fp16: return kTensorFloat16;
        case DType::bf16: return kTensorBfloat16;
        case DType::int32: return kTensorInt32;
        case DType::fp8:
        case DType::bf8:
        case DType::int8: return kTensorUint8;
    }
    return kTensorUint8;
}

CUtensorMapSwizzle swizzle_of(std::int64_t line_bytes) {
    return line_bytes == 128  ? kSwizzle128
           : line_bytes == 64 ? kSwizzle64
           : line_bytes == 32 ? kSwizzle32
                              : kSwizzleNone;
}

// Maps are made with a stand-in for the address, which every launch replaces.
alignas(64) char stand_in[64];

// Pixels of images, innermost dimension first: sizes, strides and steps of rank dims + 2.
Result<CUtensorMap> encode_im2col(const Driver& driver, const TensorMapSpec& spec) {
    const Im2colSpec& im2col = *spec.im2col;
    const auto dims = static_cast<std::size_t>(im2col.dims);
    std::uint64_t sizes[5] = {static_cast<std::uint64_t>(spec.size[0])}, strides[4] = {};
    std::uint32_t steps[5] = {1, 1, 1, 1, 1};
    int lower[3] = {}, upper[3] = {};
    auto stride = static_cast<std::uint64_t>(spec.stride_bytes[0]);
    for (std::size_t i = 0; i < dims; ++i) {
        sizes[i + 1] = static_cast<std::uint64_t>(im2col.size[i]);
        strides[i] = stride;
        stride *= sizes[i + 1];
        steps[i + 1] = static_cast<std::uint32_t>(im2col.step[i]);
        lower[i] = to_int(im2col.lower[i]), upper[i] = to_int(im2col.upper[i]);
    }
    sizes[dims + 1] = static_cast<std::uint64_t>(spec.size[2]);
    strides[dims] = static_cast<std::uint64_t>(spec.stride_bytes[1]);
    CUtensorMap map{};
    const auto code = driver.tensor_map_encode_im2col(
        &map, tensor_type(spec.dtype), static_cast<std::uint32_t>(dims) + 2, stand_in, sizes, strides, lower, upper,
        static_cast<std::uint32_t>(spec.box.columns), static_cast<std::uint32_t>(spec.box.rows), steps, 0,
        swizzle_of(spec.box.columns * bytes_of(spec.dtype)), kPromotion256, 0);
    if (code == kSuccess) return map;
    return device_error(fmt::format("{} ({} images of {} x {} x {} pixels of {} channels, box {} x {})",
                                    driver.failure("TensorMapEncodeIm2col", code).message, spec.size[2], im2col.size[2],
                                    im2col.size[1], im2col.size[0], spec.size[0], spec.box.rows, spec.box.columns));
}

Result<CUtensorMap> encode_pixel_box(const Driver& driver, const TensorMapSpec& spec) {
    constexpr std::uint32_t kRank = 5;
    const PixelBoxSpec& pixels = *spec.pixels;
    std::uint64_t sizes[kRank] = {static_cast<std::uint64_t>(spec.size[0])}, strides[kRank - 1] = {};
    std::uint32_t box[kRank] = {static_cast<std::uint32_t>(spec.box.columns)}, steps[kRank] = {1, 1, 1, 1, 1};
    auto stride = static_cast<std::uint64_t>(spec.stride_bytes[0]);
    for (std::size_t i = 0; i < pixels.size.size(); ++i) {
        sizes[i + 1] = static_cast<std::uint64_t>(pixels.size[i]),
                  box[i + 1] = static_cast<std::uint32_t>(pixels.box[i]);
        strides[i] = stride;
        stride *= sizes[i + 1];
    }
    steps[1] = static_cast<std::uint32_t>(pixels.step);
    sizes[kRank - 1] = static_cast<std::uint64_t>(spec.size[2]);
    box[kRank - 1] = static_cast<std::uint32_t>(pixels.images);
    strides[kRank - 2] = static_cast<std::uint64_t>(spec.stride_bytes[1]);
    CUtensorMap map{};
    const auto code =
        driver.tensor_map_encode(&map, tensor_type(spec.dtype), kRank, stand_in, sizes, strides, box, steps, 0,
                                 swizzle_of(spec.box.columns * bytes_of(spec.dtype)), kPromotion256, 0);
    if (code == kSuccess) return map;
    return device_error(fmt::format("{} ({} images of {} x {} x {} pixels of {} channels, boxes of {} x {} x {} x {})",
                                    driver.failure("TensorMapEncodeTiled", code).message, spec.size[2], pixels.size[2],
                                    pixels.size[1], pixels.size[0], spec.size[0], box[4], box[3], box[2], box[1]));
}

Result<CUtensorMap> encode(const Driver& driver, const TensorMapSpec& spec) {
    if (spec.im2col) return encode_im2col(driver, spec);
    if (spec.pixels) return encode_pixel_box(driver, spec);
    CUtensorMap map{};
    const std::uint64_t sizes[3] = {static_cast<std::uint64_t>(spec.size[0]), static_cast<std::uint64_t>(spec.size[1]),
                                    static_cast<std::uint64_t>(spec.size[2])};
    const std::uint64_t strides[2] = {static_cast<std::uint64_t>(spec.stride_bytes[0]),
                                      static_cast<std::uint64_t>(spec.stride_bytes[1])};
    const std::uint32_t box[3] = {static_cast<std::uint32_t>(spec.box.columns),
                                  static_cast<std::uint32_t>(spec.box.rows), 1};
    const std::uint32_t steps[3] = {1, 1, 1};
    const auto code =
        driver.tensor_map_encode(&map, tensor_type(spec.dtype), 3, stand_in, sizes, strides, box, steps, 0,
                                 swizzle_of(spec.box.columns * bytes_of(spec.dtype)), kPromotion256, 0);
    if (code == kSuccess) return map;
    return device_error(fmt::format("{} (a tensor of {} x {} x {} elements, {} and {} bytes apart, box {} x {})",
                                    driver.failure("TensorMapEncodeTiled", code).message, spec.size[0], spec.size[1],
                                    spec.size[2], spec.stride_bytes[0], spec.stride_bytes[1], spec.box.columns,
                                    spec.box.rows));
}

class CudaLaunch final : public Launch {
public:
    CudaLaunch(const Driver& driver, CUcontext context, std::shared_ptr<const CudaCode> code, GpuGrid grid,
               bool waits_for_others)
        : driver_(driver),
          context_(context),
          code_(std::move(code)),
          grid_(grid),
          waits_for_others_(waits_for_others) {}

    Status encode_maps() {
        for (std::size_t i = 0; grid_.tensor_maps && i < grid_.tensor_maps->size(); ++i) {
            if ((*grid_.tensor_maps)[i].box.rows == 0) continue;  // an operand the kernel takes no map for
            auto map = encode(driver_, (*grid_.tensor_maps)[i]);
            if (!map) return map.error();
            maps_[i] = *map;
        }
        return {};
    }

    Status run(const KernelArgs& args, Stream stream) const override {
        const ContextScope scope(driver_, context_);
        CUtensorMap maps[3];
        if (grid_.tensor_maps) {
            void* const address[3] = {args.a.data, args.b.data, args.c.data};
            for (std::size_t i = 0; i < 3; ++i) {
                maps[i] = maps_[i];
                if ((*grid_.tensor_maps)[i].box.rows == 0) continue;
                const auto& packed = (*grid_.tensor_maps)[i].workspace_offset;
                void* const at = packed ? static_cast<char*>(args.workspace) + *packed
                                        : address[(*grid_.tensor_maps)[i].operand.value_or(i)];
                const auto code = driver_.tensor_map_replace_address(&maps[i], at);
                if (code != kSuccess) return driver_.failure("TensorMapReplaceAddress", code);
            }
        }
        void* parameters[] = {const_cast<KernelArgs*>(&args), &maps[0], &maps[1], &maps[2]};
        return launch_steps(code_->functions(), grid_, [&](CUfunction function, const GpuStep& step) {
            return launch(function, step, parameters, stream);
        });
    }

    Status pack_b(const KernelArgs& args, void* packed, Stream stream) const override {
        const ContextScope scope(driver_, context_);
        KernelArgs to = args;
        to.workspace = packed;
        void* parameters[] = {&to};
        return launch_pack_b(code_->functions(), grid_, [&](CUfunction function, const GpuStep& step) {
            return launch(function, step, parameters, stream);
        });
    }

private:
    // With leave to start while the kernel before it in the stream is ending, where the kernel waits by itself for those
    // before it ahead of its first access to memory.
    Status launch(CUfunction function, const GpuStep& step, void** parameters, Stream stream) const {
        CUlaunchAttribute attributes[2] = {};
        unsigned count = 0;
        if (waits_for_others_) {
            attributes[count].id = kLaunchProgrammaticSerialization;
            attributes[count++].value.programmatic_serialization_allowed = 1;
        }
        if (const int blocks = step.cluster.m * step.cluster.n; blocks > 1) {
            attributes[count].id = kLaunchCluster;
            attributes[count++].value.cluster = {static_cast<unsigned>(blocks), 1, 1};
        }
        CUlaunchConfig config = {};
        config.grid_x = static_cast<unsigned>(step.blocks), config.grid_y = config.grid_z = 1;
        config.block_x = static_cast<unsigned>(step.threads), config.block_y = config.block_z = 1;
        config.shared_bytes = static_cast<unsigned>(step.shared_bytes);
        config.stream = static_cast<CUstream>(stream);
        config.attributes = attributes;
        config.attribute_count = count;
        return driver_.check(driver_.launch_kernel(&config, function, parameters, nullptr), "LaunchKernelEx");
    }

    const Driver& driver_;
    CUcontext context_;
    std::shared_ptr<const CudaCode> code_;
    GpuGrid grid_;
    bool waits_for_others_;
    CUtensorMap maps_[3] = {};
};

}  // namespace

Result<std::shared_ptr<const Code>> load_cuda_code(const Driver& driver, CUcontext context, const std::string& image,
                                                   const std::string& kernel) {
    return load_gpu_code<CudaCode>(driver, context, image, kernel);
}

Result<std::unique_ptr<const Launch>> prepare_cuda_launch(const Driver& driver, CUcontext context,
                                                          std::shared_ptr<const Code> code, const KernelArgs&,
                                                          GpuGrid grid, bool waits_for_others) {
    const ContextScope scope(driver, context);
    const OutsideCapture outside(driver);
    auto cuda_code = std::static_pointer_cast<const CudaCode>(std::move(code));
    if (auto status = check_functions(cuda_code->functions(), grid); !status) return status.error();
    if (auto status = cuda_code->allow_shared_bytes(grid.block.shared_bytes); !status) return status.error();
    auto launch = std::make_unique<CudaLaunch>(driver, context, std::move(cuda_code), grid, waits_for_others);
    if (auto status = launch->encode_maps(); !status) return status.error();
    return std::unique_ptr<const Launch>(std::move(launch));
}

}  // namespace tilewise
