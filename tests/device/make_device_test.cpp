// SPDX-License-Identifier: MIT
#include "device/make_device.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/sanitized.hpp"
#include "config/archs.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/cpu/thread_pool.hpp"
#include "device/emulated/fiber_stack.hpp"
#include "device/null/null_device.hpp"

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
const bool kMayHaveNoFibers = is_sanitized() || !kHasFibers;

TEST(MakeDevice, AnyGpuArchIsEmulated) {
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
    for (const char* name : {"emulated:gfx90a", "emulated:gfx942", "emulated:gfx950"}) {
        const auto amd = make_device(name, embedded_archs());
        ASSERT_TRUE(amd.ok()) << amd.error().message;
        EXPECT_EQ((*amd)->name(), name);
    }
    EXPECT_EQ(make_device("emulated:cpu-avx2", embedded_archs()).error().code, ErrorCode::device);
    EXPECT_EQ(make_device("emulated:z80", embedded_archs()).error().code, ErrorCode::usage);
}

// Not even one that rounds sizes up, so that a very large one would become very small.
TEST(MakeDevice, NoDeviceHasMoreMemoryThanThereIs) {
    const auto refuses = [](Device& device) {
        for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX - 256, SIZE_MAX / 2 + 1}) {
            const auto memory = device.allocate(bytes);
            ASSERT_FALSE(memory.ok()) << device.name() << ' ' << bytes;
            EXPECT_EQ(memory.error().code, ErrorCode::device);
        }
        const auto nothing = device.allocate(0);
        ASSERT_TRUE(nothing.ok()) << nothing.error().message;
        device.release(*nothing);
    };
    refuses(**make_device("cpu", embedded_archs()));
    NullDevice null(**embedded_archs().find("sm_90a"));
    refuses(null);
    const auto emulated = make_device("emulated:sm_90a", embedded_archs());
    if (emulated.ok()) refuses(**emulated);  // not under a sanitizer
    const auto gpu = make_device("cuda:0", embedded_archs());
    if (gpu.ok()) refuses(**gpu);  // where there is one
}

TEST(MakeDevice, WhatIsNotThereIsNamed) {
    for (const char* name : {"", "abacus", "cpu:0", "cpu:", "CPU", "cuda:", "cuda:-1", "cuda:1024", "cuda:0x", "hip:-1",
                             "emulated", ":0"}) {
        const auto device = make_device(name, embedded_archs());
        ASSERT_FALSE(device.ok()) << name;
        EXPECT_EQ(device.error().code, ErrorCode::device);
        EXPECT_EQ(device.error().message,
                  std::string("no device '") + name +
                      "'; there are cpu, cuda:0, cuda:1, ..., hip:0, hip:1, ... and emulated:ARCH");
    }
    for (const char* name : {"cuda:99", "hip:99"}) {  // whether or not there is a driver
        const auto gpu = make_device(name, embedded_archs());
        ASSERT_FALSE(gpu.ok());
        EXPECT_EQ(gpu.error().code, ErrorCode::device);
        EXPECT_TRUE(gpu.error().message.starts_with(std::string("no device ") + name)) << gpu.error().message;
    }
    EXPECT_EQ(make_device("cpu", embedded_archs(), {"z80", 0}).error().code, ErrorCode::usage);
    EXPECT_EQ(make_device("cpu", embedded_archs(), {"gfx942", 0}).error().code, ErrorCode::unsupported);
    EXPECT_EQ(make_device("cpu", embedded_archs(), {"", 1 << 20}).error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace tilewise
