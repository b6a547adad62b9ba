// SPDX-License-Identifier: MIT
// What the fake runtime knows: devices with their memory, streams, modules, graphs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/emulated/fiber_stack.hpp"
#include "device/emulated/memory_map.hpp"
#include "device/hip/fake_hip.hpp"
#include "kernels/common/args.hpp"
#include "kernels/common/machine.hpp"

namespace fake_hip {

struct FakeDevice {
    std::string arch;
    tilewise::emulated::MemoryMap memory;
    std::map<const unsigned char*, std::size_t> allocations;
};

// Work as a stream takes it: done at once, or kept in the graph that the stream is captured in.
using FakeWork = std::function<HipResult()>;
using FakeWorks = std::vector<FakeWork>;

struct FakeStream {
    int device = 0;
    bool is_capturing = false, is_broken = false;
    GpuCaptureMode mode = kCaptureGlobal;
    FakeWorks captured;
};

struct FakeKernel {
    struct FakeModule* module = nullptr;
    std::string name;
    void* twin = nullptr;
    unsigned most_threads = 0, shared_bytes = 0, argument_bytes = 0;  // as the object says
};

struct FakeModule {
    int device = 0;
    void* twin = nullptr;  // of dlopen
    tilewise::Machine** machine = nullptr;
    std::map<std::string, std::unique_ptr<FakeKernel>> kernels;
};

struct FakeState {
    std::mutex mutex;
    bool is_started = false;
    std::vector<FakeDevice> devices;
    std::set<FakeStream*> streams;
    std::set<FakeModule*> modules;
    std::set<FakeWorks*> graphs, execs;
    std::map<HipEvent, double> events;  // when they were recorded, in milliseconds
    tilewise::FiberStacks stacks;
    std::uint64_t seed = 1;
    std::string trace, answered_trace;
    std::map<std::string, HipResult> failing;
    std::string fault;  // why the last launch failed
};
FakeState& state();

// The calling thread's.
int& current_device();
GpuCaptureMode& capture_mode();
inline FakeDevice& device() { return state().devices[static_cast<std::size_t>(current_device())]; }

// fake_module.cpp: an object for the current device, with the twin of its kernels; the reason is in state().fault.
HipResult load_module(const unsigned char* image, std::unique_ptr<FakeModule>& module);
struct FakeLaunch {
    FakeKernel* kernel;
    unsigned blocks, threads, shared_bytes;
    tilewise::KernelArgs args;
};
HipResult run_launch(const FakeLaunch& launch);

}  // namespace fake_hip
