// SPDX-License-Identifier: MIT
// Padding on a GPU: rows are copied and cleared as on the host, and kernels that need aligned rows run problems without them,
// also recorded in a graph.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/random.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "device/host_rows.hpp"
#include "device/make_device.hpp"
#include "measure/bound_run.hpp"
#include "measure/device_memory.hpp"
#include "measure/device_tensors.hpp"
#include "measure/verify.hpp"
#include "problem/problem_text.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

struct GpuPadding : testing::Test {
    void SetUp() override {
        auto opened = make_device("cuda:0", embedded_archs(), {});
        if (!opened) GTEST_SKIP() << opened.error().message;
        device = std::move(*opened);
        BuildSettings settings = build_settings().value();
        settings.cache_dir =
            std::filesystem::temp_directory_path() / ("tilewise-gpu-padding-" + std::to_string(getpid()));
        settings.driver_version = device->driver_version();
        builder = std::make_unique<Builder>(settings);
    }
    void TearDown() override {
        if (builder) std::filesystem::remove_all(builder->settings().cache_dir);
    }

    std::unique_ptr<Device> device;
    std::unique_ptr<Builder> builder;
};

TEST_F(GpuPadding, RowsAreCopiedAndClearedAsOnTheHost) {
    Random random(12);
    constexpr std::size_t kBytes = 1 << 16;
    auto to = device_memory(*device, kBytes), from = device_memory(*device, kBytes);
    ASSERT_TRUE(to.ok() && from.ok());
    for (int i = 0; i < 200; ++i) {
        std::vector<unsigned char> target(kBytes, 0xA5), source(kBytes);
        for (unsigned char& byte : source) byte = static_cast<unsigned char>(random.bits());
        ASSERT_TRUE(device->copy(to->get(), target.data(), kBytes, kDefaultStream).ok());
        ASSERT_TRUE(device->copy(from->get(), source.data(), kBytes, kDefaultStream).ok());
        RowCopy copy;
        copy.row_bytes = random.between(1, 90), copy.rows = random.between(1, 12), copy.blocks = random.between(1, 5);
        const auto gap = [&] { return random.chance(40) ? 0 : random.between(1, 40); };
        copy.to_row_pitch = copy.row_bytes + gap(), copy.from_row_pitch = copy.row_bytes + gap();
        copy.to_block_pitch = (copy.rows + random.between(0, 2)) * copy.to_row_pitch + (random.chance(70) ? 0 : gap());
        copy.from_block_pitch = copy.rows * copy.from_row_pitch + (random.chance(70) ? 0 : gap());
        if (random.chance(20)) copy.from_row_pitch = random.between(0, copy.row_bytes);  // rows that overlap
        if (random.chance(20)) copy.from_block_pitch = random.between(0, copy.from_block_pitch);
        RowCopy on_host = copy;
        on_host.to = target.data(), on_host.from = source.data();
        copy_host_rows(on_host, 1);
        copy.to = to->get(), copy.from = from->get();
        ASSERT_TRUE(device->copy_rows(copy, kDefaultStream).ok());
        const std::int64_t pitch = random.between(100, 300), bytes = random.between(1, 100),
                           rows = random.between(1, 50);
        clear_host_rows(target.data() + 7, pitch, bytes, rows, 1);
        ASSERT_TRUE(
            device->clear_rows(static_cast<std::byte*>(to->get()) + 7, pitch, bytes, rows, kDefaultStream).ok());
        std::vector<unsigned char> got(kBytes);
        ASSERT_TRUE(device->copy(got.data(), to->get(), kBytes, kDefaultStream).ok());
        ASSERT_EQ(got, target) << "case " << i;
    }
}

TEST_F(GpuPadding, KernelsThatNeedAlignedRowsRunOddProblems) {
    const std::string mma = "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x32_2x2x1_16x8x16_va8_vb8_vc8@";
    std::vector<std::string> names = {mma};
    if (device->arch().name == "sm_90a") {
        names.emplace_back(
            "gemm_bf16_rcr_compv6_cshuffle_intrawave_128x256x64_2x1x1_64x256x16_va8_vb8_vc8_stages4_pers_pw1@");
    }
    for (const std::string& name : names) {
        const Kernel kernel = make_kernel(parse_kernel_name(name + device->arch().name).value());
        for (const std::string sizes :
             {"m=301,n=203,k=77", "m=301,n=203,k=77,batch=3,beta=1,epilogue=bias+relu,d=add,scale=row",
              "m=64,n=264,k=1001,batch=2,batch_stride_b=0,lda=1003", "m=128,n=256,k=64,align=2"}) {
            const Problem problem = parse_problem("gemm:" + sizes + ",dtype=bf16,layout=rcr").value();
            SCOPED_TRACE(kernel.name + "\n" + print_problem(problem));
            auto ready = Executable::prepare(problem, kernel, *device, *builder);
            ASSERT_TRUE(ready.ok()) << ready.error().message;
            ASSERT_EQ(ready->notes().size(), 1u);
            EXPECT_EQ(ready->notes()[0].kind, "padding");
            auto tensors = Tensors::make(problem, 5);
            ASSERT_TRUE(tensors.ok());
            auto on_device = DeviceTensors::make(*device, *tensors);
            ASSERT_TRUE(on_device.ok());
            const float beta = problem.beta ? 0.5f : 0.0f;
            auto run = BoundRun::make(std::make_shared<const Executable>(std::move(*ready)), *device,
                                      {&on_device->operands(), 1}, 0.75f, beta);
            ASSERT_TRUE(run.ok()) << run.error().message;
            // Recording captures a graph; it is replayed once, since C is read where there is a beta.
            auto recording = device->record([&](Stream stream, std::int64_t) { return run->run(0, stream); }, 1);
            ASSERT_TRUE(recording.ok()) << recording.error().message;
            const auto seconds = (*recording)->replay();
            ASSERT_TRUE(seconds.ok()) << seconds.error().message;
            ASSERT_TRUE(on_device->fetch().ok());
            const VerifyReport report = verify_result(*tensors, 0.75f, beta, {});
            EXPECT_TRUE(report.ok) << describe(report);
        }
    }
}

}  // namespace
}  // namespace tilewise
