// SPDX-License-Identifier: MIT
// The HIP runtime, loaded when first asked for: no part of ROCm is needed to build or start. The declarations are those of the runtime's
// documented interface that the backend uses, in ROCm 6 and 7.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "device/gpu/gpu_box.hpp"
#include "device/gpu/gpu_driver.hpp"

namespace tilewise::hip_runtime {

using HipResult = int;
using HipModule = struct ihipModule_t*;
using HipFunction = struct ihipModuleSymbol_t*;
using HipStream = struct ihipStream_t*;
using HipEvent = struct ihipEvent_t*;
using HipGraph = struct ihipGraph*;
using HipGraphExec = struct hipGraphExec*;

inline constexpr HipResult kSuccess = 0;
inline constexpr HipResult kNoDevice = 100;
inline constexpr HipResult kInvalidDevice = 101;  // that is what some versions say instead

enum HipAttribute : int {
    kL2CacheBytes = 19,
    kMultiprocessorCount = 63,
    kSharedBytesPerBlock = 74,
    kWaveSize = 87,
};
enum HipCopyKind : int { kCopyDeviceToDevice = 3, kCopyDefault = 4 };  // default: as the addresses say

struct HipMemcpy3D {
    struct Position {
        std::size_t x, y, z;
    };
    struct Pitched {
        void* memory;
        std::size_t pitch, width, height;
    };
    struct Side {
        void* array;
        Position at;
        Pitched memory;
    };
    Side from, to;
    std::size_t width_bytes, height, depth;
    HipCopyKind kind;
};
static_assert(sizeof(HipMemcpy3D) == 160);

// The struct of a device's properties has changed between versions; only the arch's name is read. Names fit into this size.
inline constexpr std::size_t kPropertiesBytes = 8192;
inline constexpr std::size_t kArchNameAt = 1160;    // hipGetDevicePropertiesR0600
inline constexpr std::size_t kOldArchNameAt = 396;  // hipGetDeviceProperties
inline constexpr std::size_t kArchNameBytes = 256;

// result, name in this table, symbol of the library, parameters
#define TILEWISE_HIP_FUNCTIONS(X)                                                                                   \
    X(HipResult, init, "hipInit", (unsigned flags))                                                                 \
    X(const char*, get_error_name, "hipGetErrorName", (HipResult error))                                            \
    X(const char*, get_error_string, "hipGetErrorString", (HipResult error))                                        \
    X(HipResult, runtime_get_version, "hipRuntimeGetVersion", (int* version))                                       \
    X(HipResult, device_get_count, "hipGetDeviceCount", (int* count))                                               \
    X(HipResult, device_get_name, "hipDeviceGetName", (char* name, int length, int device))                         \
    X(HipResult, device_get_attribute, "hipDeviceGetAttribute", (int* value, HipAttribute attribute, int device))   \
    X(HipResult, context_get_current, "hipGetDevice", (int* device))                                                \
    X(HipResult, context_set_current, "hipSetDevice", (int device))                                                 \
    X(HipResult, mem_alloc, "hipMalloc", (void** memory, std::size_t bytes))                                        \
    X(HipResult, mem_free, "hipFree", (void* memory))                                                               \
    X(HipResult, memcpy_async, "hipMemcpyAsync",                                                                    \
      (void* to, const void* from, std::size_t bytes, HipCopyKind kind, HipStream stream))                          \
    X(HipResult, memcpy_3d_async, "hipMemcpy3DAsync", (const HipMemcpy3D* copy, HipStream stream))                  \
    X(HipResult, memset_2d_async, "hipMemset2DAsync",                                                               \
      (void* memory, std::size_t pitch, int value, std::size_t width, std::size_t height, HipStream stream))        \
    X(HipResult, stream_create, "hipStreamCreateWithFlags", (HipStream * stream, unsigned flags))                   \
    X(HipResult, stream_destroy, "hipStreamDestroy", (HipStream stream))                                            \
    X(HipResult, stream_synchronize, "hipStreamSynchronize", (HipStream stream))                                    \
    X(HipResult, stream_is_capturing, "hipStreamIsCapturing", (HipStream stream, GpuCaptureStatus * status))        \
    X(HipResult, stream_begin_capture, "hipStreamBeginCapture", (HipStream stream, GpuCaptureMode mode))            \
    X(HipResult, stream_end_capture, "hipStreamEndCapture", (HipStream stream, HipGraph * graph))                   \
    X(HipResult, exchange_capture_mode, "hipThreadExchangeStreamCaptureMode", (GpuCaptureMode * mode))              \
    X(HipResult, graph_instantiate, "hipGraphInstantiateWithFlags",                                                 \
      (HipGraphExec * exec, HipGraph graph, unsigned long long flags))                                              \
    X(HipResult, graph_launch, "hipGraphLaunch", (HipGraphExec exec, HipStream stream))                             \
    X(HipResult, graph_exec_destroy, "hipGraphExecDestroy", (HipGraphExec exec))                                    \
    X(HipResult, graph_destroy, "hipGraphDestroy", (HipGraph graph))                                                \
    X(HipResult, event_create, "hipEventCreateWithFlags", (HipEvent * event, unsigned flags))                       \
    X(HipResult, event_destroy, "hipEventDestroy", (HipEvent event))                                                \
    X(HipResult, event_record, "hipEventRecord", (HipEvent event, HipStream stream))                                \
    X(HipResult, event_synchronize, "hipEventSynchronize", (HipEvent event))                                        \
    X(HipResult, event_elapsed_time, "hipEventElapsedTime", (float* milliseconds, HipEvent begin, HipEvent end))    \
    X(HipResult, module_load_data, "hipModuleLoadData", (HipModule * module, const void* image))                    \
    X(HipResult, module_unload, "hipModuleUnload", (HipModule module))                                              \
    X(HipResult, module_get_function, "hipModuleGetFunction",                                                       \
      (HipFunction * function, HipModule module, const char* name))                                                 \
    X(HipResult, launch_kernel, "hipModuleLaunchKernel",                                                            \
      (HipFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, HipStream stream, void** parameters, void** extra))

// Those that a runtime may be without.
#define TILEWISE_HIP_OPTIONAL_FUNCTIONS(X)                                                      \
    X(HipResult, graph_upload, "hipGraphUpload", (HipGraphExec exec, HipStream stream))         \
    X(HipResult, get_properties, "hipGetDevicePropertiesR0600", (void* properties, int device)) \
    X(HipResult, get_old_properties, "hipGetDeviceProperties", (void* properties, int device))

struct Runtime : GpuDriver<Runtime> {
    using Context = int;  // a device's number
    using Module = HipModule;
    using Function = HipFunction;
    using Stream = HipStream;
    using Event = HipEvent;
    using Graph = HipGraph;
    using GraphExec = HipGraphExec;
    static constexpr std::string_view kName = "HIP", kPrefix = "hip";

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of parameters cannot be in any
#define X(result, name, symbol, parameters) result(*name) parameters = nullptr;
    TILEWISE_HIP_FUNCTIONS(X)
    TILEWISE_HIP_OPTIONAL_FUNCTIONS(X)
#undef X
    std::string file;  // as it was found: "libamdhip64.so.7"
    int version = 0;   // 60342134 for HIP 6.3; 0 where it did not tell
    int devices = 0;

    std::string description() const;  // "HIP 6.3"
    HipResult copy_bytes(void* to, const void* from, std::size_t bytes, HipStream stream) const {
        return memcpy_async(to, from, bytes, kCopyDefault, stream);
    }
    HipResult copy_box(const GpuBox& box, HipStream stream) const;
    Result<std::string> arch_name(int device) const;  // "gfx942", without the features that follow

    std::string reason(HipResult code) const;  // "hipErrorOutOfMemory: out of memory"
};

// Loads and starts it once: the library that TILEWISE_HIP names, else one that the process has already, as torch brings, else ROCm's. In
// a child of a process that had started it, it cannot work, and an error says so. A machine without a GPU is no error.
Result<const Runtime*> load_runtime();

}  // namespace tilewise::hip_runtime
