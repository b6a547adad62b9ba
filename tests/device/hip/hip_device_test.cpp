// SPDX-License-Identifier: MIT
// HIP devices, driven through a runtime that judges every call: kernels, split sums, captures, several devices, forks, failures.
#include <sys/wait.h>
#include <unistd.h>

#include "device/hip/hip_testing.hpp"

namespace tilewise {
namespace {

using HipDevice = HipTest;
using namespace hip_runtime;

constexpr const char* kRun = "hipGetDevice\nhipModuleLaunchKernel tilewise_kernel\n";

TEST_F(HipDevice, IsTheArchItSaysWithItsOwnNumbers) {
    EXPECT_EQ(device->name(), "hip:0");
    EXPECT_EQ(device->arch().name, "gfx942");
    EXPECT_EQ(device->arch().units, 304);
    EXPECT_EQ(device->code_suffix(), kHsaco);
    EXPECT_EQ(device->identity(), "AMD Instinct, faked; gfx942; 304 units; HIP 7.0");
    EXPECT_EQ(open("hip:2")->arch().name, "gfx90a");
    EXPECT_EQ(
        make_device("hip:3", embedded_archs()).error().message.find("no device hip:3: this machine has 3 AMD GPUs"),
        0u);
    const auto other = make_device("hip:0", embedded_archs(), {"gfx950", 0});
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code, ErrorCode::usage);
}

TEST_F(HipDevice, ARunIsALaunchAndNothingElse) {
    const auto run = prepare(*device);
    ASSERT_TRUE(run.ok()) << run.error().message;
    ASSERT_TRUE(run->bound.run().ok());
    trace();
    for (int i = 0; i < 3; ++i) {
        const auto status = run->bound.run();
        ASSERT_TRUE(status.ok()) << status.error().message;
        EXPECT_EQ(trace(), kRun);
    }
    const auto report = run->verdict(*device);
    EXPECT_TRUE(report.ok) << describe(report);
}

TEST_F(HipDevice, SplitSumsAreAddedUpByASecondLaunch) {
    const std::string name = kHipKernel;
    const auto run = prepare(*device, name.substr(0, name.find('@')) + "_splitk2@gfx942");
    ASSERT_TRUE(run.ok()) << run.error().message;
    trace();
    const auto status = run->bound.run();
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(trace(), std::string(kRun) + "hipModuleLaunchKernel tilewise_reduce\n");
    const auto report = run->verdict(*device);
    EXPECT_TRUE(report.ok) << describe(report);
}

TEST_F(HipDevice, TwoDevicesHaveTheirOwnCodeAndMemory) {
    const auto second = open("hip:1");
    const auto here = prepare(*device), there = prepare(*second);
    ASSERT_TRUE(here.ok() && there.ok());
    trace();
    ASSERT_TRUE(there->bound.run().ok());
    EXPECT_EQ(trace(), "hipGetDevice\nhipSetDevice\nhipModuleLaunchKernel tilewise_kernel\nhipSetDevice\n");
    ASSERT_TRUE(here->bound.run().ok());
    EXPECT_TRUE(here->verdict(*device).ok);
    EXPECT_TRUE(there->verdict(*second).ok);
    // Memory of another device is none.
    Operands mixed = here->on_device.operands();
    mixed.a = there->on_device.operands().a;
    const auto bound =
        BoundRun::make(std::make_shared<const Executable>(here->bound.executable()), *device, {&mixed, 1}, 1, 0);
    ASSERT_TRUE(bound.ok());
    const auto status = bound->run();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("not in the device's memory"), std::string::npos) << status.error().message;
}

TEST_F(HipDevice, RecordsWorkAndReplaysIt) {
    const auto run = prepare(*device);
    ASSERT_TRUE(run.ok()) << run.error().message;
    auto recording = device->record(
        [&](Stream stream, std::int64_t) {
            EXPECT_TRUE(device->is_capturing(stream));
            return run->bound.run(0, stream);
        },
        2);
    ASSERT_TRUE(recording.ok()) << recording.error().message;
    EXPECT_FALSE(run->verdict(*device).ok) << "it has run already";
    trace();
    const auto seconds = (*recording)->replay();
    ASSERT_TRUE(seconds.ok()) << seconds.error().message;
    EXPECT_EQ(
        trace(),
        "hipGetDevice\nhipEventRecord\nhipGraphLaunch\nhipEventRecord\nhipEventSynchronize\nhipEventElapsedTime\n");
    EXPECT_GT(*seconds, 0);
    EXPECT_TRUE(run->verdict(*device).ok);
}

// As torch does it: a stream of the program is captured, and the graph launched later.
TEST_F(HipDevice, AProgramCapturesARun) {
    const auto run = prepare(*device);
    ASSERT_TRUE(run.ok()) << run.error().message;
    const Runtime& runtime = **load_runtime();
    HipStream stream = nullptr;
    HipGraph graph = nullptr;
    HipGraphExec exec = nullptr;
    ASSERT_EQ(runtime.stream_create(&stream, 1), kSuccess);
    ASSERT_EQ(runtime.stream_begin_capture(stream, kCaptureGlobal), kSuccess);
    EXPECT_TRUE(device->is_capturing(stream));
    trace();
    ASSERT_TRUE(run->bound.run(0, stream).ok());
    EXPECT_EQ(trace(), kRun);
    const auto memory = device->allocate(64);  // has nothing to do with the capture, and says so
    ASSERT_TRUE(memory.ok()) << memory.error().message;
    device->release(*memory);
    ASSERT_EQ(runtime.stream_end_capture(stream, &graph), kSuccess);
    ASSERT_EQ(runtime.graph_instantiate(&exec, graph, 0), kSuccess);
    EXPECT_FALSE(run->verdict(*device).ok) << "it has run already";
    ASSERT_EQ(runtime.graph_launch(exec, stream), kSuccess);
    EXPECT_TRUE(run->verdict(*device).ok);
    runtime.graph_exec_destroy(exec), runtime.graph_destroy(graph), runtime.stream_destroy(stream);
}

TEST_F(HipDevice, AForkedChildIsToldWhyItHasNone) {
    const pid_t child = fork();
    if (child == 0) {
        const auto opened = make_device("hip:0", embedded_archs());
        _exit(!opened && opened.error().message.find("forked") != std::string::npos ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(HipDevice, RowsAreCopiedAndCleared) {
    const auto memory = device->allocate(64);
    ASSERT_TRUE(memory.ok());
    auto* const bytes = static_cast<unsigned char*>(*memory);
    unsigned char host[64];
    for (int i = 0; i < 64; ++i) host[i] = static_cast<unsigned char>(i);
    ASSERT_TRUE(device->copy(bytes, host, 64, kDefaultStream).ok());
    const RowCopy copy = {bytes + 32, bytes, 3, 2, 2, 4, 8, 5, 16};
    ASSERT_TRUE(device->copy_rows(copy, kDefaultStream).ok());
    ASSERT_TRUE(device->clear_rows(bytes + 48, 8, 2, 2, kDefaultStream).ok());
    ASSERT_TRUE(device->copy(host, bytes, 64, kDefaultStream).ok());
    EXPECT_EQ(host[36], 5);
    EXPECT_EQ(host[44], 21);
    EXPECT_EQ(host[56], 0);
    EXPECT_EQ(host[58], 58);
    device->release(*memory);
}

TEST_F(HipDevice, AFailedCallIsNamedAndTheNextOneWorks) {
    const auto says = [](const auto& result, const std::string& text) {
        ASSERT_FALSE(result.ok()) << text;
        EXPECT_EQ(result.error().code, ErrorCode::device);
        EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
    };
    fail_next("hipMalloc", fake_hip::kOutOfMemory);
    says(device->allocate(64), "cannot allocate 64 bytes: hipErrorOutOfMemory");
    for (const char* call : {"hipModuleLoadData", "hipModuleGetFunction"}) {
        const auto fresh = open("hip:0");
        fail_next(call, fake_hip::kNoBinary);
        says(prepare(*fresh), std::string(call) + " failed: hipErrorNoBinaryForGpu");
    }
    const auto run = prepare(*device);
    ASSERT_TRUE(run.ok()) << run.error().message;
    fail_next("hipModuleLaunchKernel", fake_hip::kLaunchFailure);
    says(run->bound.run(), "hipModuleLaunchKernel failed: hipErrorLaunchFailure");
    const auto work = [&](Stream stream, std::int64_t) { return run->bound.run(0, stream); };
    for (const char* call : {"StreamCreate", "StreamBeginCapture", "StreamEndCapture", "GraphInstantiate",
                             "GraphUpload", "StreamSynchronize", "EventCreate"}) {
        const std::string word = call;
        const bool has_flags = word == "StreamCreate" || word == "GraphInstantiate" || word == "EventCreate";
        fail_next(("hip" + word + (has_flags ? "WithFlags" : "")).c_str(), fake_hip::kOutOfMemory);
        says(device->record(work, 1), "hip" + word + " failed: hipErrorOutOfMemory");
    }
    auto recording = device->record(work, 1);
    ASSERT_TRUE(recording.ok()) << recording.error().message;
    for (const char* call : {"hipEventRecord", "hipGraphLaunch", "hipEventSynchronize", "hipEventElapsedTime"}) {
        fail_next(call, fake_hip::kOutOfMemory);
        says((*recording)->replay(), std::string(call) + " failed: hipErrorOutOfMemory");
    }
    fail_next("hipMemcpyAsync", fake_hip::kOutOfMemory);
    says(run->on_device.fetch(), "hipMemcpyAsync failed");
    ASSERT_TRUE((*recording)->replay().ok());
    EXPECT_TRUE(run->verdict(*device).ok);
}

TEST(HipRuntime, AnOlderOneSaysItsArchElsewhere) {
    Runtime runtime;
    runtime.get_old_properties = [](void* properties, int) {
        std::snprintf(static_cast<char*>(properties) + kOldArchNameAt, kArchNameBytes, "gfx90a:sramecc+:xnack-");
        return kSuccess;
    };
    EXPECT_EQ(runtime.arch_name(0).value(), "gfx90a");
    runtime.get_old_properties = nullptr;
    EXPECT_FALSE(runtime.arch_name(0).ok());
}

}  // namespace
}  // namespace tilewise
