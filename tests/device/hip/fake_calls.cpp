// SPDX-License-Identifier: MIT
// The functions of the fake HIP runtime, by the names of the real one: devices, memory and code.

#include <cstdlib>
#include <cstring>

#include "base/text.hpp"
#include "device/hip/fake_call.hpp"
#include "device/host_memory.hpp"

namespace fake_hip {

FakeState& state() {
    static FakeState all;
    return all;
}
int& current_device() {
    thread_local int number = 0;
    return number;
}
GpuCaptureMode& capture_mode() {
    thread_local GpuCaptureMode mode = kCaptureGlobal;
    return mode;
}

namespace {

std::string variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value ? value : otherwise;
}

}  // namespace

void start(FakeState& all) {
    all.is_started = true;
    const std::string archs = variable("FAKE_HIP_ARCHS", "gfx942");
    for (const std::string_view arch : tilewise::split(archs, ',')) {
        if (!arch.empty()) all.devices.push_back({std::string(arch), {}, {}});
    }
    const std::string fail = variable("FAKE_HIP_FAIL", "");
    if (const auto equals = fail.find('='); equals != std::string::npos) {
        all.failing[fail.substr(0, equals)] = std::atoi(fail.c_str() + equals + 1);
    }
}

namespace {

// Memory of a device may only be touched where it is; other addresses are the host's.
bool is_inside(const FakeState& all, const void* memory, std::size_t bytes) {
    const auto* const at = static_cast<const unsigned char*>(memory);
    for (const FakeDevice& on : all.devices) {
        for (const auto& [begin, size] : on.allocations) {
            if (at + bytes > begin && at < begin + size) return at >= begin && at + bytes <= begin + size;
        }
    }
    return at != nullptr;
}

HipResult properties(const char* name, void* to, int number, std::size_t arch_at) {
    return call(name, [&](FakeState& all) {
        if (number < 0 || number >= static_cast<int>(all.devices.size())) return kInvalidDevice;
        const std::string arch = all.devices[static_cast<std::size_t>(number)].arch + ":sramecc+:xnack-";
        std::memcpy(static_cast<char*>(to) + arch_at, arch.c_str(), arch.size() + 1);
        return kSuccess;
    });
}

}  // namespace
}  // namespace fake_hip

using namespace fake_hip;

FAKE_HIP const char* fake_hip_trace() {
    FakeState& all = state();
    const std::scoped_lock lock(all.mutex);
    all.answered_trace = std::exchange(all.trace, {});
    return all.answered_trace.c_str();
}
FAKE_HIP void fake_hip_fail(const char* name, HipResult code) {
    const std::scoped_lock lock(state().mutex);
    state().failing[name] = code;
}

FAKE_HIP HipResult hipInit(unsigned) {
    return call("hipInit", [](FakeState& all) { return all.devices.empty() ? kInvalidDevice : kSuccess; });
}
FAKE_HIP const char* hipGetErrorName(HipResult code) {
    switch (code) {
        case kOutOfMemory: return "hipErrorOutOfMemory";
        case kNoBinary: return "hipErrorNoBinaryForGpu";
        case kInvalidHandle: return "hipErrorInvalidHandle";
        case kNotFound: return "hipErrorNotFound";
        case kLaunchFailure: return "hipErrorLaunchFailure";
        case kCaptureUnsupported: return "hipErrorStreamCaptureUnsupported";
        default: return "hipErrorInvalidValue";
    }
}
FAKE_HIP const char* hipGetErrorString(HipResult) { return state().fault.c_str(); }
FAKE_HIP HipResult hipRuntimeGetVersion(int* version) {
    *version = std::atoi(variable("FAKE_HIP_VERSION", "70000000").c_str());
    return kSuccess;
}
FAKE_HIP HipResult hipGetDeviceCount(int* count) {
    return call("hipGetDeviceCount", [&](FakeState& all) {
        *count = static_cast<int>(all.devices.size());
        return *count > 0 ? kSuccess : kNoDevice;
    });
}
FAKE_HIP HipResult hipDeviceGetName(char* name, int length, int) {
    return call("hipDeviceGetName", [&](FakeState&) {
        std::snprintf(name, static_cast<std::size_t>(length), "AMD Instinct, faked");
        return kSuccess;
    });
}
FAKE_HIP HipResult hipGetDevicePropertiesR0600(void* to, int number) {
    return properties("hipGetDevicePropertiesR0600", to, number, kArchNameAt);
}
FAKE_HIP HipResult hipGetDeviceProperties(void* to, int number) {
    return properties("hipGetDeviceProperties", to, number, kOldArchNameAt);
}
FAKE_HIP HipResult hipDeviceGetAttribute(int* value, HipAttribute attribute, int) {
    return call("hipDeviceGetAttribute", [&](FakeState&) {
        switch (attribute) {
            case kL2CacheBytes: *value = 4 << 20; return kSuccess;
            case kMultiprocessorCount: *value = 304; return kSuccess;
            case kSharedBytesPerBlock: *value = 64 << 10; return kSuccess;
            case kWaveSize: *value = std::atoi(variable("FAKE_HIP_WAVE", "64").c_str()); return kSuccess;
        }
        return kInvalidValue;
    });
}
FAKE_HIP HipResult hipGetDevice(int* number) {
    return call("hipGetDevice", [&](FakeState&) { return *number = current_device(), kSuccess; });
}
FAKE_HIP HipResult hipSetDevice(int number) {
    return call("hipSetDevice", [&](FakeState& all) {
        if (number < 0 || number >= static_cast<int>(all.devices.size())) return kInvalidDevice;
        return current_device() = number, kSuccess;
    });
}

// ---- Memory ----

FAKE_HIP HipResult hipMalloc(void** memory, std::size_t bytes) {
    return unsafe_call("hipMalloc", [&](FakeState&) {
        constexpr std::size_t kAlignment = 256, kMostBytes = std::size_t{1} << 32;
        *memory = bytes > kMostBytes ? nullptr : tilewise::allocate_host(bytes, kAlignment);
        if (!*memory) return kOutOfMemory;
        std::memset(*memory, tilewise::kEmulatedPoison, bytes);
        device().memory.add(*memory, bytes);
        device().allocations[static_cast<unsigned char*>(*memory)] = bytes;
        return kSuccess;
    });
}
FAKE_HIP HipResult hipFree(void* memory) {
    return unsafe_call("hipFree", [&](FakeState&) {
        if (!memory) return kSuccess;
        if (device().allocations.erase(static_cast<unsigned char*>(memory)) == 0) return kInvalidValue;
        device().memory.remove(memory);
        std::free(memory);
        return kSuccess;
    });
}
FAKE_HIP HipResult hipMemcpyAsync(void* to, const void* from, std::size_t bytes, HipCopyKind kind, HipStream stream) {
    return call("hipMemcpyAsync", [&](FakeState& all) {
        if (kind != kCopyDefault || !is_inside(all, to, bytes) || !is_inside(all, from, bytes)) return kInvalidValue;
        return enqueue(all, stream, [=] { return std::memcpy(to, from, bytes), kSuccess; });
    });
}
FAKE_HIP HipResult hipMemcpy3DAsync(const HipMemcpy3D* given, HipStream stream) {
    return call("hipMemcpy3DAsync", [&, copy = *given](FakeState& all) {
        for (const auto* side : {&copy.from, &copy.to}) {
            const auto& at = side->memory;
            if (side->array || at.pitch < copy.width_bytes || at.height < copy.height) return kInvalidValue;
            const std::size_t rows = (copy.depth - 1) * at.height + copy.height;
            if (!is_inside(all, at.memory, (rows - 1) * at.pitch + copy.width_bytes)) return kInvalidValue;
        }
        return enqueue(all, stream, [copy] {
            const auto row = [](const HipMemcpy3D::Side& side, std::size_t z, std::size_t y) {
                return static_cast<unsigned char*>(side.memory.memory) +
                       (z * side.memory.height + y) * side.memory.pitch;
            };
            for (std::size_t z = 0; z < copy.depth; ++z) {
                for (std::size_t y = 0; y < copy.height; ++y) {
                    std::memcpy(row(copy.to, z, y), row(copy.from, z, y), copy.width_bytes);
                }
            }
            return kSuccess;
        });
    });
}
FAKE_HIP HipResult hipMemset2DAsync(void* memory, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                    HipStream stream) {
    return call("hipMemset2DAsync", [&](FakeState& all) {
        if (pitch < width || !is_inside(all, memory, (height - 1) * pitch + width)) return kInvalidValue;
        return enqueue(all, stream, [=] {
            for (std::size_t y = 0; y < height; ++y) {
                std::memset(static_cast<unsigned char*>(memory) + y * pitch, value, width);
            }
            return kSuccess;
        });
    });
}

// ---- Code ----

FAKE_HIP HipResult hipModuleLoadData(HipModule* module, const void* image) {
    return unsafe_call("hipModuleLoadData", [&](FakeState& all) {
        std::unique_ptr<FakeModule> made;
        const HipResult code = load_module(static_cast<const unsigned char*>(image), made);
        if (code != kSuccess) return code;
        *module = reinterpret_cast<HipModule>(made.get());
        all.modules.insert(made.release());
        return kSuccess;
    });
}
FAKE_HIP HipResult hipModuleUnload(HipModule module) {
    return unsafe_call("hipModuleUnload", [&](FakeState& all) {
        if (all.modules.erase(reinterpret_cast<FakeModule*>(module)) == 0) return kInvalidHandle;
        delete reinterpret_cast<FakeModule*>(module);
        return kSuccess;
    });
}
FAKE_HIP HipResult hipModuleGetFunction(HipFunction* function, HipModule module, const char* name) {
    return call("hipModuleGetFunction", [&](FakeState& all) {
        auto* const from = reinterpret_cast<FakeModule*>(module);
        if (!all.modules.contains(from)) return kInvalidHandle;
        const auto found = from->kernels.find(name);
        if (found == from->kernels.end()) return kNotFound;
        *function = reinterpret_cast<HipFunction>(found->second.get());
        return kSuccess;
    });
}
FAKE_HIP HipResult hipModuleLaunchKernel(HipFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                         HipStream stream, void** parameters, void** extra) {
    auto* const kernel = reinterpret_cast<FakeKernel*>(function);
    const auto launch = [&](FakeState& all) {
        constexpr unsigned kMostShared = 64 << 10;
        if (!all.modules.contains(kernel->module) || kernel->module->device != current_device()) return kInvalidHandle;
        if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 || block_y != 1 || block_z != 1)
            return kInvalidValue;
        if (block_x > kernel->most_threads || kernel->shared_bytes + shared_bytes > kMostShared) return kInvalidValue;
        if (!parameters || extra || kernel->argument_bytes != sizeof(tilewise::KernelArgs)) return kInvalidValue;
        const auto& args = *static_cast<const tilewise::KernelArgs*>(parameters[0]);
        return enqueue(all, stream,
                       [todo = FakeLaunch{kernel, grid_x, block_x, shared_bytes, args}] { return run_launch(todo); });
    };
    return call("hipModuleLaunchKernel", launch, kernel->name);
}
