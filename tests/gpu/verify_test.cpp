// SPDX-License-Identifier: MIT
// Checking on a real GPU: the cases of tests/measure/device_check_cases.hpp, and a large product, timed, right at first and
// then broken in the ways kernels go wrong. Skips, saying so, where there is no GPU.
//   TILEWISE_TEST_DEVICE   cuda:0     TILEWISE_TEST_CHECKS 200: random problems that are compared with the host's verdict
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "base/text.hpp"
#include "config/archs.hpp"
#include "measure/bound_run.hpp"
#include "measure/check_kernel.hpp"
#include "measure/checked_operands.hpp"
#include "measure/device_check_cases.hpp"
#include "problem/facts.hpp"
#include "select/runtime.hpp"

namespace tilewise {
namespace {

std::string test_variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value ? value : otherwise;
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct GpuVerify : testing::Test {
    void SetUp() override {
        RuntimeOptions options;
        options.device = test_variable("TILEWISE_TEST_DEVICE", "cuda:0");
        auto opened = open_runtime(options, embedded_archs());
        if (!opened) GTEST_SKIP() << opened.error().message;
        if (!has_check_kernels(opened->device->arch())) GTEST_SKIP() << "the host judges the results of this GPU";
        runtime = std::move(*opened);
    }
    static std::size_t problems() {
        return static_cast<std::size_t>(*parse_integer(test_variable("TILEWISE_TEST_CHECKS", "200")));
    }

    // Runs the kernel that the dispatcher takes, once; how it adds up.
    Summation compute(const Problem& problem, const Operands& operands, float alpha, float beta) {
        auto plan = choose_plan(runtime, problem, {});
        if (!plan) throw std::runtime_error(plan.error().message);
        auto executable = runtime.dispatcher->executable(problem, *plan);
        if (!executable) throw std::runtime_error(executable.error().message);
        auto run = BoundRun::make(*executable, *runtime.device, {&operands, 1}, alpha, beta);
        if (!run) throw std::runtime_error(run.error().message);
        auto status = run->run();
        if (status) status = runtime.device->synchronize(kDefaultStream);
        if (!status) throw std::runtime_error(status.error().message);
        return summation_of(plan->kernel->config, runtime.device->arch());
    }

    Runtime runtime;
};

TEST_F(GpuVerify, OperandsAreTheHostsBitForBit) {
    operands_are_the_hosts(*runtime.device, *runtime.builder, problems());
}

TEST_F(GpuVerify, SaysWhatTheHostSays) { verdicts_are_the_hosts(*runtime.device, *runtime.builder, problems()); }

TEST_F(GpuVerify, EveryDamagedGuardAndChangedInputIsFound) { damage_is_found(*runtime.device, *runtime.builder, 5); }

TEST_F(GpuVerify, LargeResultsAreJudgedInTimeAndBrokenOnesFound) {
    for (const char* text : {"gemm:m=8192,n=8192,k=8192,dtype=bf16", "gemm:m=8192,n=8192,k=8192,dtype=fp16,layout=rrr",
                             "gemm:m=4099,n=4104,k=4104,dtype=fp32",
                             "gemm:m=4096,n=4096,k=4096,dtype=bf16,epilogue=bias+gelu,d=mul,beta=1,scale=row",
                             "conv_fwd:n=64,c=256,k=256,in=28x28,filter=3x3,pad=1x1,dtype=bf16,epilogue=bias+relu",
                             "conv_bwd_data:n=32,c=64,k=128,in=56x56,filter=3x3,stride=2x2,pad=1x1,dtype=bf16",
                             "conv_bwd_weight:n=32,c=128,k=128,in=28x28,filter=3x3,pad=1x1,dtype=bf16"}) {
        SCOPED_TRACE(text);
        const Problem problem = problem_of(text);
        Device& device = *runtime.device;
        made(device, *runtime.builder, problem_of("gemm:m=64,n=64,k=64,dtype=bf16"), 1);  // compiles
        auto begin = Clock::now();
        const DeviceCheck check = made(device, *runtime.builder, problem, 1);
        const double make_s = seconds_since(begin);
        const float alpha = 0.75f, beta = problem.beta ? 0.5f : 0.0f;
        VerifyOptions options;
        options.summation = compute(problem, check.operands(), alpha, beta);
        begin = Clock::now();
        const auto report = check.verify(alpha, beta, options);
        const double verify_s = seconds_since(begin);
        ASSERT_TRUE(report.ok()) << report.error().message;
        EXPECT_TRUE(report->ok) << describe(*report);
        std::printf("%s: operands made in %.3f s, judged in %.3f s: %s\n", text, make_s, verify_s,
                    describe(*report).c_str());
        EXPECT_LT(make_s + verify_s, 1.5);

        const KernelArgs args = problem_args(problem);
        const DType out = problem.dtype_out;
        const auto size = static_cast<std::size_t>(bytes_of(out));
        const GemmView view = gemm_view(problem);
        const std::int64_t last_row = view.m - 1, last_col = view.n - 1;
        for (const auto& [row, col] :
             {std::pair{0L, 0L}, {last_row, last_col}, {last_row, 0L}, {last_row / 2 + 1, last_col / 3}}) {
            auto* place = static_cast<std::byte*>(check.operands().c) +
                          (row * args.c.row_stride + col * args.c.col_stride) * bytes_of(out);
            std::uint32_t before = 0;
            ASSERT_TRUE(device.copy(&before, place, size, kDefaultStream).ok());
            for (const std::uint32_t bad : {encode(out, 1000), encode(out, NAN), poison_bits(out)}) {
                ASSERT_TRUE(device.copy(place, &bad, size, kDefaultStream).ok());
                const auto broken = check.verify(alpha, beta, options);
                ASSERT_TRUE(broken.ok()) << broken.error().message;
                EXPECT_EQ(broken->failed, 1) << describe(*broken);
                ASSERT_TRUE(broken->failure.has_value());
                EXPECT_EQ(std::pair(broken->failure->row, broken->failure->col), std::pair(row, col));
                EXPECT_EQ(broken->failure->unwritten, bad == poison_bits(out));
            }
            ASSERT_TRUE(device.copy(place, &before, size, kDefaultStream).ok());
        }
    }
}

}  // namespace
}  // namespace tilewise
