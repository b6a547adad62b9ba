// SPDX-License-Identifier: MIT
// Every GEMM kernel of a rule set, on random problems that it takes, on a real GPU, against the reference: odd sizes, strides,
// batch, epilogues, split reductions. gpu_testing.hpp says what can be asked for.
#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "gpu/gpu_testing.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

// Sizes that the kernel's vectors divide, a little of everything else.
std::optional<Problem> problem_for(Random& random, const KernelConfig& c) {
    Problem p;
    p.dtype_a = c.dtype, p.dtype_b = c.dtype_b, p.dtype_out = c.dtype_out;
    constexpr double kMostFlops = 2e7;
    do {
        randomize_gemm(random, p, random.chance(60) ? 300 : 900);
        p.layout = c.layout;
        // Few rows or columns at times, and deep reductions for kernels that split them.
        if (random.chance(25)) p.gemm.m = random.between(1, 20);
        if (random.chance(25)) p.gemm.n = random.between(1, 20);
        if (c.stream_k != StreamK::off) p.gemm.k = random.between(1, 40) * c.tile.k + random.between(0, 40);
        if (c.split_k > 1) p.gemm.k = random.between(c.split_k, 3 * c.split_k) * c.tile.k + random.between(0, 40);
        const bool gemv = is_gemv(family_of(c));
        if (gemv) p.gemm.k = random.chance(25) ? random.between(1, 20) : random.between(1, 3000);
        for (int i = 0; i < 3; ++i) {
            const std::int64_t wide = gemv ? vector_width(c, i) : std::max({c.vector_a, c.vector_b, c.vector_c});
            for (auto [axis, size] : {std::pair(Axis::m, &p.gemm.m), {Axis::n, &p.gemm.n}, {Axis::k, &p.gemm.k}}) {
                if (!gemv || contiguous_axis(c, i) == axis) *size = (*size + wide - 1) / wide * wide;
            }
        }
        if (gemv) (c.swap_ab ? p.gemm.m : p.gemm.n) = random.between(1, c.tile.n);
    } while (flops(p) > kMostFlops);
    randomize_options(random, p);
    p.packed_b = c.pipeline == Pipeline::preshuffle;
    p.math = c.math;
    p.align_bytes = kDefaultAlignBytes;
    p.workspace_bytes = kNoWorkspaceLimit;
    p.deterministic = false;
    return p;
}

using GpuGemm = GpuTest;

TEST_F(GpuGemm, EveryKernelMatchesTheReference) {
    check(kernels(Op::gemm, variable("TILEWISE_TEST_RULE_SET", "default")), problem_for);
}

// Rounding, saturation and conversion at the end of every kind of kernel.
TEST_F(GpuGemm, EveryOutputMatchesTheReference) {
    for (const DType out : {DType::fp32, DType::fp16, DType::bf16, DType::fp8, DType::bf8, DType::int8, DType::int32}) {
        check(kernels(Op::gemm, "tiny", out), problem_for);
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
    const KernelList list = kernels(Op::gemm, "tiny");
    if (list.empty()) GTEST_SKIP() << "no kernel of the rule set tiny has TILEWISE_TEST_ONLY in its name";
    const auto request = build_request(list.front()->config, *device);
    ASSERT_TRUE(request.ok()) << request.error().message;
    EXPECT_EQ(request->suffix, kPtx);
    check(list, problem_for);
}

}  // namespace
}  // namespace tilewise
