// SPDX-License-Identifier: MIT
// The CUDA driver, loaded when first asked for: no toolkit, header or link is needed to build or start. The declarations are
// those of the driver's documented interface that the backend uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "device/gpu/gpu_box.hpp"
#include "device/gpu/gpu_driver.hpp"

namespace tilewise::cuda_driver {

using CUresult = int;
using CUdevice = int;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUdeviceptr = void*;  // a number in the driver's own declarations, of the same size

inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kNotInitialized = 3;

struct alignas(64) CUtensorMap {
    std::uint64_t opaque[16];
};

enum CUdeviceAttribute : int {
    kSharedBytesPerBlockOptin = 97,
    kMultiprocessorCount = 16,
    kClockKilohertz = 13,
    kL2CacheBytes = 38,
    kComputeMajor = 75,
    kComputeMinor = 76,
    kSingleToDoubleRatio = 87,
};
enum CUfunctionAttribute : int { kMaxDynamicSharedBytes = 8, kNonPortableClusterSize = 14 };
enum CUtensorMapDataType : int {
    kTensorUint8 = 0,
    kTensorInt32 = 3,
    kTensorFloat16 = 6,
    kTensorFloat32 = 7,
    kTensorBfloat16 = 9,
};
enum CUtensorMapSwizzle : int { kSwizzleNone = 0, kSwizzle32 = 1, kSwizzle64 = 2, kSwizzle128 = 3 };
enum CUtensorMapPromotion : int { kPromotionNone = 0, kPromotion64 = 1, kPromotion128 = 2, kPromotion256 = 3 };

enum CUlaunchAttributeId : int { kLaunchCluster = 4, kLaunchProgrammaticSerialization = 6 };
struct CUlaunchAttribute {
    CUlaunchAttributeId id;
    char padding[4];
    union {
        char size[64];
        struct {
            unsigned x, y, z;
        } cluster;
        int programmatic_serialization_allowed;
    } value;
};
struct CUlaunchConfig {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    CUstream stream;
    CUlaunchAttribute* attributes;
    unsigned attribute_count;
};

// A box of bytes, from one pitched piece of memory into another: rows of a slice, slices.
struct CUmemcpy3D {
    struct Side {
        std::size_t x_bytes, y, z, level;
        int memory_type;  // kDeviceMemory
        const void* host;
        CUdeviceptr device;
        void* array;
        void* reserved;
        std::size_t pitch, height;  // bytes between rows, rows between slices
    };
    Side from, to;
    std::size_t width_bytes, height, depth;
};
inline constexpr int kDeviceMemory = 2;
static_assert(sizeof(CUmemcpy3D) == 200);

// name in this table, symbol of the library, parameters
#define TILEWISE_CUDA_FUNCTIONS(X)                                                                                     \
    X(init, "cuInit", (unsigned flags))                                                                                \
    X(get_error_name, "cuGetErrorName", (CUresult error, const char** text))                                           \
    X(get_error_string, "cuGetErrorString", (CUresult error, const char** text))                                       \
    X(driver_get_version, "cuDriverGetVersion", (int* version))                                                        \
    X(device_get_count, "cuDeviceGetCount", (int* count))                                                              \
    X(device_get, "cuDeviceGet", (CUdevice * device, int ordinal))                                                     \
    X(device_get_name, "cuDeviceGetName", (char* name, int length, CUdevice device))                                   \
    X(device_get_attribute, "cuDeviceGetAttribute", (int* value, CUdeviceAttribute attribute, CUdevice device))        \
    X(primary_context_retain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))                      \
    X(context_get_current, "cuCtxGetCurrent", (CUcontext * context))                                                   \
    X(context_set_current, "cuCtxSetCurrent", (CUcontext context))                                                     \
    X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr * memory, std::size_t bytes))                                           \
    X(mem_free, "cuMemFree_v2", (CUdeviceptr memory))                                                                  \
    X(memcpy_async, "cuMemcpyAsync", (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream))           \
    X(memcpy_3d_async, "cuMemcpy3DAsync_v2", (const CUmemcpy3D* copy, CUstream stream))                                \
    X(memset_2d_async, "cuMemsetD2D8Async",                                                                            \
      (CUdeviceptr memory, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height,              \
       CUstream stream))                                                                                               \
    X(stream_create, "cuStreamCreate", (CUstream * stream, unsigned flags))                                            \
    X(stream_destroy, "cuStreamDestroy_v2", (CUstream stream))                                                         \
    X(stream_synchronize, "cuStreamSynchronize", (CUstream stream))                                                    \
    X(stream_is_capturing, "cuStreamIsCapturing", (CUstream stream, GpuCaptureStatus * status))                        \
    X(stream_begin_capture, "cuStreamBeginCapture_v2", (CUstream stream, GpuCaptureMode mode))                         \
    X(stream_end_capture, "cuStreamEndCapture", (CUstream stream, CUgraph * graph))                                    \
    X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (GpuCaptureMode * mode))                             \
    X(graph_instantiate, "cuGraphInstantiateWithFlags", (CUgraphExec * exec, CUgraph graph, unsigned long long flags)) \
    X(graph_upload, "cuGraphUpload", (CUgraphExec exec, CUstream stream))                                              \
    X(graph_launch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream))                                              \
    X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec exec))                                                    \
    X(graph_destroy, "cuGraphDestroy", (CUgraph graph))                                                                \
    X(event_create, "cuEventCreate", (CUevent * event, unsigned flags))                                                \
    X(event_destroy, "cuEventDestroy_v2", (CUevent event))                                                             \
    X(event_record, "cuEventRecord", (CUevent event, CUstream stream))                                                 \
    X(event_synchronize, "cuEventSynchronize", (CUevent event))                                                        \
    X(event_elapsed_time, "cuEventElapsedTime", (float* milliseconds, CUevent begin, CUevent end))                     \
    X(module_load_data, "cuModuleLoadData", (CUmodule * module, const void* image))                                    \
    X(module_unload, "cuModuleUnload", (CUmodule module))                                                              \
    X(module_get_function, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char* name))          \
    X(function_set_attribute, "cuFuncSetAttribute", (CUfunction function, CUfunctionAttribute attribute, int value))   \
    X(launch_kernel, "cuLaunchKernelEx",                                                                               \
      (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra))                            \
    X(tensor_map_encode, "cuTensorMapEncodeTiled",                                                                     \
      (CUtensorMap * map, CUtensorMapDataType type, std::uint32_t rank, void* address, const std::uint64_t* sizes,     \
       const std::uint64_t* stride_bytes, const std::uint32_t* box, const std::uint32_t* element_strides,              \
       int interleave, CUtensorMapSwizzle swizzle, CUtensorMapPromotion promotion, int fill))                          \
    X(tensor_map_encode_im2col, "cuTensorMapEncodeIm2col",                                                             \
      (CUtensorMap * map, CUtensorMapDataType type, std::uint32_t rank, void* address, const std::uint64_t* sizes,     \
       const std::uint64_t* stride_bytes, const int* lower, const int* upper, std::uint32_t channels,                  \
       std::uint32_t pixels, const std::uint32_t* element_strides, int interleave, CUtensorMapSwizzle swizzle,         \
       CUtensorMapPromotion promotion, int fill))                                                                      \
    X(tensor_map_replace_address, "cuTensorMapReplaceAddress", (CUtensorMap * map, void* address))

struct Driver : GpuDriver<Driver> {
    using Context = CUcontext;
    using Module = CUmodule;
    using Function = CUfunction;
    using Stream = CUstream;
    using Event = CUevent;
    using Graph = CUgraph;
    using GraphExec = CUgraphExec;
    static constexpr std::string_view kName = "CUDA", kPrefix = "cu";

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of parameters cannot be in any
#define X(name, symbol, parameters) CUresult(*name) parameters = nullptr;
    TILEWISE_CUDA_FUNCTIONS(X)
#undef X
    int version = 0;  // 13000 for CUDA 13.0

    std::string description() const;  // "driver 13.0"
    CUresult copy_bytes(void* to, const void* from, std::size_t bytes, CUstream stream) const {
        return memcpy_async(to, const_cast<void*>(from), bytes, stream);
    }
    CUresult copy_box(const GpuBox& box, CUstream stream) const;

    std::string reason(CUresult code) const;  // "CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image ..."
};

// Loads and starts it once. In a child of a process that had started it, it cannot work, and an error says so.
Result<const Driver*> load_driver();

}  // namespace tilewise::cuda_driver
