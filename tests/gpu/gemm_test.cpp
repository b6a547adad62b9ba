// SPDX-License-Identifier: MIT
// Every kernel of a rule set, on random problems that it takes, on a real GPU, against the reference: odd sizes, strides,
// batch, epilogues, split reductions, guards around every buffer. Skips, saying so, where there is no GPU.
//   TILEWISE_TEST_DEVICE   cuda:0, or emulated:sm_90a on a machine without a GPU (a few kernels: it is slow)
//   TILEWISE_TEST_RULE_SET default     TILEWISE_TEST_DTYPES bf16,fp16,fp32,fp8,bf8,fp8_bf8,bf8_fp8,int8
//   TILEWISE_TEST_PROBLEMS 6 for each kernel     TILEWISE_TEST_SHARD 0/1: every n-th kernel, for several processes at once
//   TILEWISE_TEST_ONLY     a part of the kernels' names
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "base/random.hpp"
#include "base/text.hpp"
#include "codegen/kernel_source.hpp"
#include "config/archs.hpp"
#include "config/fit.hpp"
#include "device/make_device.hpp"
#include "measure/bound_run.hpp"
#include "measure/device_tensors.hpp"
#include "measure/verify.hpp"
#include "problem/problem_text.hpp"
#include "problem/random_problem.hpp"
#include "registry/rule_set_registry.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

std::string variable(const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return value ? value : otherwise;
}

// Sizes that the kernel's vectors divide, a little of everything else.
Problem problem_for(Random& random, const KernelConfig& c) {
    Problem p;
    p.dtype_a = c.dtype, p.dtype_b = c.dtype_b, p.dtype_out = c.dtype_out;
    constexpr double kMostFlops = 2e7;
    do {
        randomize_gemm(random, p, random.chance(60) ? 300 : 900);
        p.layout = c.layout;
        // Few rows or columns at times, and deep reductions for kernels that split them.
        if (random.chance(25)) p.gemm.m = random.between(1, 20);
        if (random.chance(25)) p.gemm.n = random.between(1, 20);
        if (c.split_k > 1) p.gemm.k = random.between(c.split_k, 3 * c.split_k) * c.tile.k + random.between(0, 40);
        const std::int64_t wide = std::max({c.vector_a, c.vector_b, c.vector_c});
        for (std::int64_t* size : {&p.gemm.m, &p.gemm.n, &p.gemm.k}) *size = (*size + wide - 1) / wide * wide;
    } while (flops(p) > kMostFlops);
    randomize_options(random, p);
    p.packed_b = false;
    p.math = c.math;
    p.align_bytes = kDefaultAlignBytes;
    p.workspace_bytes = kNoWorkspaceLimit;
    p.deterministic = false;
    return p;
}

constexpr const char* kTypes = "bf16,fp16,fp32,fp8,bf8,fp8_bf8,bf8_fp8,int8";

struct GpuGemm : testing::Test {
    void SetUp() override { open(embedded_archs()); }

    void open(const ArchCatalog& archs) {
        auto opened = make_device(variable("TILEWISE_TEST_DEVICE", "cuda:0"), archs);
        if (!opened) GTEST_SKIP() << opened.error().message;
        device = std::move(*opened);
        BuildSettings settings = build_settings().value();
        settings.driver_version = device->driver_version();
        builder = std::make_unique<Builder>(std::move(settings));
    }

    // With the usual output of each type unless another is given.
    KernelList kernels(const std::string& rule_set, std::optional<DType> out = std::nullopt) const {
        KernelList mine;
        const std::string only = variable("TILEWISE_TEST_ONLY", "");
        const std::string shard = variable("TILEWISE_TEST_SHARD", "0/1");
        const auto at = *parse_integer(shard.substr(0, shard.find('/')));
        const auto of = *parse_integer(shard.substr(shard.find('/') + 1));
        std::int64_t index = 0;
        const std::string dtypes = variable("TILEWISE_TEST_DTYPES", kTypes);
        for (const std::string_view dtype : split(dtypes, ',')) {
            KernelQuery query;
            query.arch = &device->arch();
            query.set = parse_enum<RuleSet>(rule_set).value();
            query.op = Op::gemm;
            query.dtypes = parse_pair(dtype).value();
            if (!device->arch().find_warp_tiles(*query.dtypes) || (out && !is_output_of(query.dtypes->a, *out)))
                continue;
            query.out = out;
            query.available = has_template;
            const auto listed = list_kernels(query);
            EXPECT_TRUE(listed.ok()) << listed.error().message;
            for (const Kernel& kernel : *listed) {
                if (!kernel.available || kernel.name.find(only) == std::string::npos) continue;
                if (index++ % of == at) mine.push_back(std::make_shared<const Kernel>(kernel));
            }
        }
        return mine;
    }

    void check(const KernelList& list) const;

    std::unique_ptr<Device> device;
    std::unique_ptr<Builder> builder;
};

void GpuGemm::check(const KernelList& list) const {
    const auto problems = *parse_integer(variable("TILEWISE_TEST_PROBLEMS", "6"));
    Random random(2026);
    int runs = 0, without = 0;
    for (const KernelPtr& kernel : list) {
        int mine = 0;
        for (int tries = 0; mine < problems && tries < 30 * problems; ++tries) {
            const Problem problem = problem_for(random, kernel->config);
            if (check_problem(problem) || first_misfit(ProblemView(problem), kernel->config, device->arch())) continue;
            SCOPED_TRACE(kernel->name + "\n" + print_problem(problem));
            auto ready = Executable::prepare(problem, *kernel, *device, *builder);
            ASSERT_TRUE(ready.ok()) << ready.error().message;
            auto tensors = Tensors::make(problem, random.bits());
            ASSERT_TRUE(tensors.ok()) << tensors.error().message;
            const float alpha = random.chance(30) ? 0.75f : 1.0f, beta = problem.beta ? 0.5f : 0.0f;
            auto on_device = DeviceTensors::make(*device, *tensors);
            ASSERT_TRUE(on_device.ok()) << on_device.error().message;
            auto run = BoundRun::make(std::make_shared<const Executable>(std::move(*ready)), *device,
                                      {&on_device->operands(), 1}, alpha, beta);
            ASSERT_TRUE(run.ok()) << run.error().message;
            const auto status = run->run();
            ASSERT_TRUE(status.ok()) << status.error().message;
            const auto fetched = on_device->fetch();
            ASSERT_TRUE(fetched.ok()) << fetched.error().message;
            VerifyOptions options;
            options.split_k = kernel->config.split_k;
            const VerifyReport report = verify_result(*tensors, alpha, beta, options);
            EXPECT_TRUE(report.ok) << describe(report);
            ++mine, ++runs;
            if (!report.ok) break;
        }
        if (mine == 0) {
            ++without;
            ADD_FAILURE() << "no problem found that " << kernel->name << " may run";
        }
    }
    std::printf("%zu kernels, %d runs, %d without a problem\n", list.size(), runs, without);
}

TEST_F(GpuGemm, EveryKernelMatchesTheReference) { check(kernels(variable("TILEWISE_TEST_RULE_SET", "default"))); }

// Rounding, saturation and conversion at the end of every kind of kernel.
TEST_F(GpuGemm, EveryOutputMatchesTheReference) {
    for (const DType out : {DType::fp32, DType::fp16, DType::bf16, DType::fp8, DType::bf8, DType::int8, DType::int32}) {
        check(kernels("tiny", out));
    }
}

// A GPU for which there is no arch but one of an earlier major version: the driver compiles that one's PTX.
struct GpuPtx : GpuGemm {
    void SetUp() override {
        ArchCatalog older;
        older.add(arch_named("sm_80"));
        open(older);
        if (device && device->code_suffix() != kPtx) GTEST_SKIP() << "this GPU loads the cubins of sm_80";
    }
};

TEST_F(GpuPtx, KernelsOfAnEarlierArchRun) {
    const KernelList list = kernels("tiny");
    if (list.empty()) GTEST_SKIP() << "no kernel of the rule set tiny has TILEWISE_TEST_ONLY in its name";
    const auto request = build_request(list.front()->config, *device);
    ASSERT_TRUE(request.ok()) << request.error().message;
    EXPECT_EQ(request->suffix, kPtx);
    check(list);
}

}  // namespace
}  // namespace tilewise
