// SPDX-License-Identifier: MIT
// The tests that run kernels share these: a cache of their own, the host's device, one small kernel, and a checked run.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "build/build_testing.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "device/cpu/cpu_device.hpp"
#include "measure/bound_run.hpp"
#include "measure/device_tensors.hpp"
#include "measure/verify.hpp"
#include "problem/problem_text.hpp"
#include "registry/registry.hpp"
#include "run/executable.hpp"

namespace tilewise::run_testing {

// On every x86-64 machine; an odd micro-kernel, so that all edges are used by odd sizes.
inline const char* const kKernelName = "gemm_fp32_any_basic_v1_default_intrawave_48x128x128_1x1x1_4x8x1@cpu-generic";

class RunTest : public build_testing::BuildTest {
protected:
    void SetUp() override {
        BuildTest::SetUp();
        auto device = make_cpu_device(**embedded_archs().find("cpu-generic"));
        ASSERT_TRUE(device.ok()) << device.error().message;
        device_ = std::move(*device);
    }

    static Kernel small_kernel() { return make_kernel(*parse_kernel_name(kKernelName)); }

    // Neither kAlpha nor beta is 1, so that a kernel that ignores its value is caught.
    static constexpr float kAlpha = 0.75f;

    // Has the checker judge one run of the executable on random tensors.
    Result<VerifyReport> checked_run(const Problem& problem, Executable executable, float alpha_times = kAlpha) {
        auto tensors = Tensors::make(problem, 1);
        if (!tensors) return tensors.error();
        const float alpha = alpha_times * suggested_alpha(problem), beta = problem.beta ? 0.5f : 0.0f;
        auto on_device = DeviceTensors::make(*device_, *tensors);
        if (!on_device) return on_device.error();
        auto run = BoundRun::make(std::make_shared<const Executable>(std::move(executable)), *device_,
                                  {&on_device->operands(), 1}, alpha, beta);
        if (!run) return run.error();
        if (auto status = run->run(); !status) return status.error();
        if (auto status = on_device->fetch(); !status) return status.error();
        return verify_result(*tensors, alpha, beta, {});
    }

    std::unique_ptr<Device> device_;
};

}  // namespace tilewise::run_testing
