// SPDX-License-Identifier: MIT
#include "device/make_device.hpp"

#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/cpu/thread_pool.hpp"
#include "device/emulated/fiber_stack.hpp"

namespace tilewise {
namespace {

TEST(MakeDevice, TheCpuHasTheHostsArchUnlessToldOtherwise) {
    const auto device = make_device("cpu", embedded_archs());
    ASSERT_TRUE(device.ok()) << device.error().message;
    EXPECT_EQ((*device)->name(), "cpu");
    EXPECT_EQ((*device)->arch().name, (*host_cpu_arch(embedded_archs()))->name);
    EXPECT_EQ((*device)->max_threads(), usable_cpus());

    const auto other = make_device("cpu", embedded_archs(), {"cpu-generic", 1});
    ASSERT_TRUE(other.ok()) << other.error().message;
    EXPECT_EQ((*other)->arch().name, "cpu-generic");
    EXPECT_EQ((*other)->max_threads(), 1);
}

// A library under the address or thread sanitizer has no fibers, whatever the test that is linked with it has.
#if defined(TILEWISE_SANITIZED)
constexpr bool kMayHaveNoFibers = true;
#else
constexpr bool kMayHaveNoFibers = !kHasFibers;
#endif

TEST(MakeDevice, AnyCudaArchIsEmulated) {
    const auto device = make_device("emulated:sm_80", embedded_archs());
    if (kMayHaveNoFibers && !device.ok()) GTEST_SKIP() << device.error().message;
    ASSERT_TRUE(device.ok()) << device.error().message;
    EXPECT_EQ((*device)->name(), "emulated:sm_80");
    EXPECT_EQ((*device)->arch().name, "sm_80");
    EXPECT_EQ((*device)->code_suffix(), kEmulatedCode);
    EXPECT_TRUE(make_device("emulated:sm_80", embedded_archs(), {"sm_80", 0}).ok());
    const auto other = make_device("emulated:sm_80", embedded_archs(), {"sm_90a", 0});
    ASSERT_FALSE(other.ok()) << "it would not be what was asked for";
    EXPECT_EQ(other.error().code, ErrorCode::usage);
    EXPECT_NE(other.error().message.find("emulated:sm_80 is sm_80, not sm_90a"), std::string::npos);
    EXPECT_EQ(make_device("emulated:gfx942", embedded_archs()).error().code, ErrorCode::device);
    EXPECT_EQ(make_device("emulated:z80", embedded_archs()).error().code, ErrorCode::usage);
}

TEST(MakeDevice, WhatIsNotThereIsNamed) {
    for (const char* name : {"", "abacus", "cpu:0", "CPU"}) {
        const auto device = make_device(name, embedded_archs());
        ASSERT_FALSE(device.ok()) << name;
        EXPECT_EQ(device.error().code, ErrorCode::device);
        EXPECT_NE(device.error().message.find(std::string("'") + name + "'"), std::string::npos);
    }
    const auto gpu = make_device("cuda:99", embedded_archs());  // whether or not there is a driver
    ASSERT_FALSE(gpu.ok());
    EXPECT_EQ(gpu.error().code, ErrorCode::device);
    EXPECT_NE(gpu.error().message.find("cuda:99"), std::string::npos) << gpu.error().message;
    EXPECT_EQ(make_device("cpu", embedded_archs(), {"z80", 0}).error().code, ErrorCode::usage);
    EXPECT_EQ(make_device("cpu", embedded_archs(), {"gfx942", 0}).error().code, ErrorCode::unsupported);
    EXPECT_EQ(make_device("cpu", embedded_archs(), {"", 1 << 20}).error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace tilewise
