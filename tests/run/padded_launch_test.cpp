// SPDX-License-Identifier: MIT
// Kernels that need whole tiles and aligned rows, on problems that have neither: random ones of each against the reference,
// with guards around every tensor and around the workspace.
#include "run/padded_launch.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "base/random.hpp"
#include "build/kept_cache.hpp"
#include "build/nvrtc.hpp"
#include "config/fit.hpp"
#include "config/geometry.hpp"
#include "config/rule_set.hpp"
#include "config/rules.hpp"
#include "device/forwarding_device.hpp"
#include "device/null/null_device.hpp"
#include "family/family.hpp"
#include "run/conv_problems.hpp"
#include "run/run_testing.hpp"

namespace tilewise {
namespace {

using namespace run_testing;

constexpr unsigned char kGuard = 0xC3;

class PaddedLaunchTest : public RunTest {
protected:
    void SetUp() override {
        RunTest::SetUp();
        settings_.cache_dir = build_testing::kept_cache(settings_.cache_dir);
        settings_.compile_limit =
            std::chrono::minutes(3);  // some kernels are large, and other tests run beside this one
    }

    // One launch with a workspace that begins anywhere, full of garbage, and ends at once.
    static Status launch_guarded(const Executable& executable, Operands operands, std::int64_t skew) {
        const auto bytes = static_cast<std::size_t>(executable.workspace_bytes());
        constexpr std::size_t kGuardBytes = 64;
        std::vector<unsigned char> memory(bytes + static_cast<std::size_t>(skew) + kGuardBytes, kGuard);
        operands.workspace = memory.data() + skew;
        auto status = executable.launch(operands);
        for (std::size_t i = 0; i < kGuardBytes; ++i) {
            EXPECT_EQ(memory[memory.size() - 1 - i], kGuard) << "behind the workspace";
        }
        for (std::int64_t i = 0; i < skew; ++i) EXPECT_EQ(memory[static_cast<std::size_t>(i)], kGuard);
        return status;
    }

    void run_and_check(Random& random, const Problem& problem, const Kernel& kernel, Builder& builder) {
        auto ready = Executable::prepare(problem, kernel, *device_, builder);
        ASSERT_TRUE(ready.ok()) << ready.error().message;
        ASSERT_EQ(ready->notes().size(), 1u);
        EXPECT_EQ(ready->notes()[0].kind, "padding");
        auto tensors = Tensors::make(problem, random.bits());
        ASSERT_TRUE(tensors.ok()) << tensors.error().message;
        auto on_device = DeviceTensors::make(*device_, *tensors);
        ASSERT_TRUE(on_device.ok()) << on_device.error().message;
        Operands operands = on_device->operands();
        operands.alpha = suggested_alpha(problem) * 0.75f;
        operands.beta = problem.beta ? 0.5f : 0.0f;
        const auto status = launch_guarded(*ready, operands, random.between(0, 70));
        ASSERT_TRUE(status.ok()) << status.error().message;
        VerifyOptions options;
        options.summation = summation_of(kernel.config, device_->arch());
        const VerifyReport report = verify_result(*tensors, operands.alpha, operands.beta, options);
        ASSERT_TRUE(report.ok) << describe(report) << "\n" << ready->notes()[0].message;
    }
};

enum class Kind { product, merged, depthwise };
Kind padding_kind_of(const KernelConfig& c) {
    if (c.specialization == Specialization::depthwise) return Kind::depthwise;
    return c.num_groups_to_merge > 1 ? Kind::merged : Kind::product;
}

// A kernel that the arch has, made strict: it wants whole tiles in some dimensions, and aligned rows of one layout.
std::optional<Kernel> strict_kernel(Random& random, const ArchSpec& arch, Op op, DTypePair pair, Kind kind) {
    const auto configs = expand(arch, op, pair, RuleSet::standard);
    std::vector<KernelConfig> fitting;
    for (const KernelConfig& config : *configs) {
        if (padding_kind_of(config) == kind) fitting.push_back(config);
    }
    if (fitting.empty()) return std::nullopt;
    KernelConfig c = random.pick(fitting);
    if (c.pipeline == Pipeline::preshuffle) return std::nullopt;
    c.layout = op == Op::gemm
                   ? static_cast<Layout>(random.between(static_cast<int>(Layout::rcr), static_cast<int>(Layout::ccc)))
                   : channels_last(c.ndim);
    c.pad = {random.chance(30), random.chance(30), random.chance(30)};
    for (int i = 0; i < 3; ++i) {
        const bool has_neighbours = kind != Kind::depthwise || !is_weight(op, i);
        if (has_neighbours) set_vector_width(c, i, 1 << random.between(0, 2));
    }
    if (!check_config(c, arch).empty() || !has_code(c, arch)) return std::nullopt;
    return make_kernel(std::move(c));
}

void make_odd_gemm(Random& random, Problem& p, Layout layout) {
    randomize_gemm(random, p, 60);
    p.layout = layout;
    for (std::size_t i = 0; i < 3; ++i) {  // were drawn for another layout
        if (p.gemm.leading[i] != kPacked) p.gemm.leading[i] = 60 + random.between(1, 64);
        if (p.gemm.batch_stride[i] > 0) p.gemm.batch_stride[i] = 60 * 124 + random.between(1, 64);
    }
}

// The groups may be any number, whatever the kernel merges.
Problem odd_conv(Random& random, const KernelConfig& config) {
    Problem p = random_conv_problem(random, config, false);
    p.layout = config.layout;
    ConvShape& s = p.conv;
    const std::int64_t c = s.c / s.g, k = s.k / s.g;
    if (config.num_groups_to_merge > 1 && s.g > 2 && random.chance(60)) --s.g;
    s.c = s.g * c, s.k = s.g * k;
    return p;
}

Problem odd_problem(Random& random, const KernelConfig& config) {
    Problem p;
    if (config.op == Op::gemm) {
        p.dtype_a = config.dtype, p.dtype_b = config.dtype_b, p.dtype_out = config.dtype_out;
        make_odd_gemm(random, p, config.layout);
        randomize_options(random, p);
    } else {
        p = odd_conv(random, config);
    }
    p.packed_b = false;
    p.math = Math::strict;
    p.align_bytes = kDefaultAlignBytes;
    p.workspace_bytes = kNoWorkspaceLimit;
    return p;
}

// Small enough for the reference and for a machine that does other things too.
constexpr double kMostReferenceFlops = 1e6, kMostPaddedFlops = 5e7;

class PaddedLaunchOf : public PaddedLaunchTest, public testing::WithParamInterface<Op> {};
INSTANTIATE_TEST_SUITE_P(Op, PaddedLaunchOf, testing::ValuesIn(kAllOps),
                         [](const auto& op) { return std::string(name_of(op.param)); });

TEST_P(PaddedLaunchOf, RandomProblemsOnStrictKernelsMatchTheReference) {
    Random random(2027);
    Builder builder(settings_);
    // Only the sizes of types matter here: four bytes, two and one. Backward directions have no int8.
    const DType narrow = GetParam() == Op::gemm || GetParam() == Op::conv_fwd ? DType::int8 : DType::bf16;
    const std::array types = {DType::fp32, DType::bf16, narrow};
    constexpr int kKernels = 3, kRunsEach = 12, kKinds = 3;
    int kernels = 0, runs = 0;
    for (std::size_t i = 0; kernels < kKernels && i < 1000; ++i) {
        // The kinds in turns, each with the next pair of types.
        const auto kind = GetParam() == Op::gemm ? Kind::product : static_cast<Kind>(kernels % kKinds);
        const auto kernel = strict_kernel(random, device_->arch(), GetParam(),
                                          {types[i % types.size()], types[i % types.size()]}, kind);
        if (!kernel || device_->refuses(kernel->config)) continue;
        int here = 0;
        for (int tries = 0; here < kRunsEach && tries < 50 * kRunsEach; ++tries) {
            const Problem problem = odd_problem(random, kernel->config);
            if (check_problem(problem) || reference_flops(problem) > kMostReferenceFlops) continue;
            const auto padded = padded_problem(problem, kernel->config, device_->arch());
            if (!padded || flops(padded->problem) > kMostPaddedFlops) continue;
            SCOPED_TRACE(kernel->name + "\n" + print_problem(problem));
            run_and_check(random, problem, *kernel, builder);
            if (HasFailure()) return;
            ++here;
        }
        kernels += here > 0 ? 1 : 0;
        runs += here;
    }
    std::printf("%d runs of %d kernels\n", runs, kernels);
    EXPECT_EQ(kernels, kKernels);
    EXPECT_GT(runs, kKernels * 10);
}

const char* const kWholeTiles =
    "gemm_fp32_rcr_basic_v1_default_intrawave_48x128x128_1x1x1_4x8x1_va4_vb4_vc4_pad-none@cpu-generic";

TEST_F(PaddedLaunchTest, NothingIsCopiedThatNeedNotBe) {
    class Counting : public ForwardingDevice {
    public:
        using ForwardingDevice::ForwardingDevice;
        Status copy_rows(const RowCopy& copy, Stream stream) override {
            bytes += copy.row_bytes * copy.rows * copy.blocks;
            return ForwardingDevice::copy_rows(copy, stream);
        }
        std::int64_t bytes = 0;
    };
    Counting device(*device_);
    Builder builder(settings_);
    const Kernel kernel = make_kernel(*parse_kernel_name(kWholeTiles));
    const auto copied_bytes = [&](const std::string& sizes) {
        const Problem problem = parse_problem("gemm:" + sizes + ",dtype=fp32,layout=rcr,align=64").value();
        auto ready = Executable::prepare(problem, kernel, device, builder);
        EXPECT_TRUE(ready.ok()) << ready.error().message;
        device.bytes = 0;
        const auto report = checked_run(problem, std::move(*ready));
        EXPECT_TRUE(report.ok() && report->ok);
        return device.bytes / static_cast<std::int64_t>(sizeof(float));
    };
    EXPECT_EQ(copied_bytes("m=48,n=128,k=128"), 0) << "it fits";
    EXPECT_EQ(copied_bytes("m=48,n=128,k=100"), 48 * 100 + 128 * 100) << "the result is written in place";
    EXPECT_EQ(copied_bytes("m=40,n=128,k=128"), 40 * 128 + 40 * 128) << "A in, C out";
    EXPECT_EQ(copied_bytes("m=40,n=128,k=128,beta=1"), 40 * 128 + 2 * 40 * 128) << "C in as well";
    EXPECT_EQ(copied_bytes("m=48,n=128,k=128,ldb=130"), 128 * 128) << "rows of B off their boundaries";
    EXPECT_EQ(copied_bytes("m=48,n=128,k=100,batch=3,batch_stride_b=0"), 3 * 48 * 100 + 128 * 100) << "one B for all";
}

// A GPU would get to see these: the padded sizes, and copies where tensor copies may begin.
TEST_F(PaddedLaunchTest, AGpuKernelIsGivenThePaddedProblem) {
    if (const auto nvrtc = find_nvrtc(settings_.nvrtc, std::nullopt); !nvrtc) GTEST_SKIP() << nvrtc.error().message;
    NullDevice device(arch_named("sm_90a"));
    Builder builder(settings_);
    const Kernel kernel = make_kernel(*parse_kernel_name(
        "gemm_bf16_rcr_compv6_cshuffle_intrawave_128x256x64_2x1x1_64x256x16_va8_vb8_vc8_stages4_pers_"
        "pw1@sm_90a"));
    const Problem problem = parse_problem("gemm:m=30,n=21,k=9,dtype=bf16,layout=rcr,batch=2").value();
    auto ready = Executable::prepare(problem, kernel, device, builder);
    ASSERT_TRUE(ready.ok()) << ready.error().message;
    alignas(16) std::array<unsigned short, 2 * 30 * 21> a{}, b{}, c{};  // as large as the largest of them
    Operands operands;
    operands.a = a.data(), operands.b = b.data(), operands.c = c.data();
    std::vector<unsigned char> memory(static_cast<std::size_t>(ready->workspace_bytes()) + 3, kGuard);
    operands.workspace = memory.data() + 3;
    ASSERT_TRUE(ready->launch(operands).ok());
    ASSERT_EQ(device.launches.size(), 3u) << "padding, the kernel, cropping";
    const KernelArgs& args = device.launches[1].args;
    EXPECT_EQ(args.m, 30);
    EXPECT_EQ(args.n, 24);
    EXPECT_EQ(args.k, 16);
    EXPECT_EQ(args.a.row_stride, 16);
    for (const void* pointer : {args.a.data, args.b.data, args.c.data}) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % 256, 0u);
    }
    const auto task_of = [&](std::size_t launch) {
        const RowTasks& tasks = TILEWISE_FAMILY_ARGS(RowTasks, device.launches[launch].args);
        return std::pair(tasks.count, tasks.task[0]);
    };
    const auto [pads, first] = task_of(0);
    EXPECT_EQ(pads, 2) << "A and B; beta is 0";
    EXPECT_EQ(std::tuple(first.action, first.row_bytes, first.wide_row_bytes, first.bytes),
              std::tuple(RowAction::pad_chunks, 9 * 2, 16 * 2, 2 * 30 * 16 * 2));
    const auto [crops, last] = task_of(2);
    EXPECT_EQ(crops, 1);
    EXPECT_EQ(std::tuple(last.row_bytes, last.wide_row_bytes, last.bytes), std::tuple(21 * 2, 24 * 2, 2 * 30 * 21 * 2));
    EXPECT_EQ(last.action, RowAction::crop);
    EXPECT_EQ(last.element_bytes, 2) << "rows of 42 bytes";
    const auto address = reinterpret_cast<std::uintptr_t>(c.data());
    EXPECT_EQ(std::tuple(last.narrow.low, last.narrow.high),
              std::tuple(static_cast<unsigned>(address), static_cast<unsigned>(std::uint64_t{address} >> 32)));
}

TEST_F(PaddedLaunchTest, WhatIsLackingIsSaidAsUsual) {
    Builder builder(settings_);
    const Kernel kernel = make_kernel(*parse_kernel_name(kWholeTiles));
    const Problem problem = parse_problem("gemm:m=5,n=6,k=7,dtype=fp32,layout=rcr,d=add").value();
    const auto ready = Executable::prepare(problem, kernel, *device_, builder);
    ASSERT_TRUE(ready.ok()) << ready.error().message;
    EXPECT_EQ(ready->packed_b_bytes(), 0);
    std::vector<float> numbers(64), results(64);
    std::vector<std::byte> workspace(static_cast<std::size_t>(ready->workspace_bytes()));
    Operands operands;
    operands.a = operands.b = numbers.data(), operands.c = results.data();
    operands.workspace = workspace.data();
    EXPECT_EQ(ready->launch(operands).error().code, ErrorCode::usage) << "the D tensor is null";
    operands.d[0] = numbers.data();
    operands.workspace = nullptr;
    EXPECT_EQ(ready->launch(operands).error().code, ErrorCode::usage) << "so is the workspace";
    operands.workspace = workspace.data();
    EXPECT_TRUE(ready->launch(operands).ok());

    const Problem little = parse_problem("gemm:m=5,n=6,k=7,dtype=fp32,layout=rcr,workspace=100").value();
    const auto refused = Executable::prepare(little, kernel, *device_, builder);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("fit_workspace"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace tilewise
