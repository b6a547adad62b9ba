// SPDX-License-Identifier: MIT
// The fake HIP runtime, a libamdhip64.so.7 for tests: functions of the real one, which judge every call as that does, or more strictly,
// keep a trace of them, and run kernels by their emulated twins (fake_module.cpp). Everything is done at once, in the calling thread.
//   FAKE_HIP_ARCHS    the devices, "gfx942,gfx90a"; gfx942 unless set, and none where it is empty
//   FAKE_HIP_VERSION  what hipRuntimeGetVersion says; 70000000
//   FAKE_HIP_FAIL     a call and the code it fails with, "hipMalloc=2"
//   FAKE_HIP_WAVE     lanes of a wave; 64
#pragma once

#include <string>

#include "device/hip/runtime.hpp"

namespace fake_hip {

using namespace tilewise::hip_runtime;
using tilewise::GpuCaptureMode, tilewise::GpuCaptureStatus;
using tilewise::kCaptureGlobal, tilewise::kCaptureRelaxed, tilewise::kCaptureNone, tilewise::kCaptureActive;

inline constexpr HipResult kInvalidValue = 1, kOutOfMemory = 2, kNoBinary = 209, kInvalidHandle = 400, kNotFound = 500,
                           kLaunchFailure = 719, kCaptureUnsupported = 900, kCaptureBroken = 901,
                           kCaptureUnmatched = 903;

// For programs that have loaded the library: found by these names with dlsym.
using TraceFunction = const char*();  // fake_hip_trace: the calls since the last question, one a line
using FailFunction = void(const char* call, HipResult code);  // fake_hip_fail: the next such call fails

}  // namespace fake_hip
