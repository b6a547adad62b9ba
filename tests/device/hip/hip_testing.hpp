// SPDX-License-Identifier: MIT
// Tests of HIP devices share these: the fake runtime's trace and its failures on demand, problems made ready on a device, and the judge.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "device/hip/fake_hip.hpp"
#include "device/make_device.hpp"
#include "family/family.hpp"
#include "measure/bound_run.hpp"
#include "measure/device_tensors.hpp"
#include "measure/verify.hpp"
#include "problem/problem_text.hpp"
#include "registry/registry.hpp"
#include "run/executable.hpp"

namespace tilewise {

inline constexpr const char* kHipKernel =
    "gemm_fp32_rcr_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x8_va4_vb4_vc4@gfx942";
inline constexpr const char* kHipProblem = "gemm:m=70,n=68,k=36,dtype=fp32,layout=rcr";

// A problem made ready on a device, with operands there.
struct HipRun {
    KernelConfig config;
    std::unique_ptr<Tensors> tensors;  // stay where they are
    DeviceTensors on_device;
    BoundRun bound;

    VerifyReport verdict(const Device& device) const {
        EXPECT_TRUE(on_device.fetch().ok());
        VerifyOptions options;
        options.summation = summation_of(config, device.arch());
        return verify_result(*tensors, 1.0f, 0.0f, options);
    }
};

class HipTest : public testing::Test {
protected:
    void SetUp() override {
        void* const library = dlopen(std::getenv("TILEWISE_HIP"), RTLD_NOW | RTLD_LOCAL);
        ASSERT_TRUE(library) << dlerror() << "; TILEWISE_HIP must name the fake runtime";
        trace_ = reinterpret_cast<fake_hip::TraceFunction*>(dlsym(library, "fake_hip_trace"));
        fail_ = reinterpret_cast<fake_hip::FailFunction*>(dlsym(library, "fake_hip_fail"));
        ASSERT_TRUE(trace_ && fail_);
        device = open("hip:0");
        const auto request = build_request(parse_kernel_name(kHipKernel).value(), *device);
        if (!builder.has_compiler(request.value())) GTEST_SKIP() << "there is no clang for AMD GPUs";
    }

    static std::unique_ptr<Device> open(const char* name) {
        auto opened = make_device(name, embedded_archs());
        EXPECT_TRUE(opened.ok()) << opened.error().message;
        return std::move(*opened);
    }

    // The calls since the last question.
    std::string trace() const { return trace_(); }
    void fail_next(const char* call, fake_hip::HipResult code) const { fail_(call, code); }

    Result<HipRun> prepare(Device& on, const std::string& name = kHipKernel, const std::string& text = kHipProblem) {
        const Problem problem = parse_problem(text).value();
        const KernelConfig config = parse_kernel_name(name).value();
        auto executable = Executable::prepare(problem, make_kernel(config), on, builder);
        if (!executable) return executable.error();
        auto tensors = std::make_unique<Tensors>(Tensors::make(problem, 1).value());
        auto on_device = DeviceTensors::make(on, *tensors);
        if (!on_device) return on_device.error();
        auto bound = BoundRun::make(std::make_shared<const Executable>(std::move(*executable)), on,
                                    {&on_device->operands(), 1}, 1.0f, 0.0f);
        if (!bound) return bound.error();
        return HipRun{config, std::move(tensors), std::move(*on_device), std::move(*bound)};
    }

    Builder builder{build_settings().value()};
    std::unique_ptr<Device> device;

private:
    fake_hip::TraceFunction* trace_ = nullptr;
    fake_hip::FailFunction* fail_ = nullptr;
};

}  // namespace tilewise
