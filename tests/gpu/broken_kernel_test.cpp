// SPDX-License-Identifier: MIT
// The emulated GPU checked: real GPU kernels with one small fault each must not pass on it, in any order of threads that a
// few seeds give. Many of these faults go unseen on a GPU most of the time.
#include "run/broken_kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "build/build_settings.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "device/emulated/emulated_device.hpp"
#include "measure/bound_run.hpp"
#include "measure/device_tensors.hpp"
#include "measure/verify.hpp"
#include "problem/problem_text.hpp"
#include "registry/registry.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

struct BrokenFamily {
    const char* name;
    const char* kernel;
    std::vector<Fault> faults;
    const char* chain = nullptr;  // that the kernel is compiled for; null: for every one
};

// Several steps of k, and tiles that are not full.
const std::string kProduct = "gemm:m=72,n=40,k=136,dtype=bf16,layout=rcr";
const std::string kWide = "gemm:m=200,n=136,k=456,dtype=bf16,layout=rcr";

const std::string kAcross = "gemm:m=72,n=40,k=328,dtype=bf16,layout=crr";
const std::string kLong = "gemm:m=72,n=136,k=328,dtype=bf16,layout=rcr";

// Rows of C, and pixels of an image, that begin anywhere.
const std::string kOdd = "gemm:m=72,n=91,k=136,dtype=bf16,layout=rcr";
const std::string kOddChannels = "conv_fwd:n=1,g=1,c=11,k=13,in=7x6,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc";

// Several tiles of pixels, the last one not full; narrow groups.
const std::string kWeights = "conv_bwd_weight:n=2,g=1,c=24,k=40,in=7x6,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc";
const std::string kNarrowWeights =
    "conv_bwd_weight:n=1,g=8,c=32,k=32,in=7x6,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc";

const std::string kChain = kWide + ",epilogue=bias+add+relu,beta=1";

const BrokenFamily kFamilies[] = {
    {"Warps",
     "gemm_bf16_rcr_mem_cshuffle_intrawave_64x64x32_2x2x1_16x8x16_va8_vb8_vc8_stages4@sm_80",
     {{"tiles are read before all threads have brought their parts",
       "wait_copies<ahead - 1>();\n            sync_block();", "wait_copies<ahead - 1>();", kProduct},
      {"tiles are read before they are there", "wait_copies<ahead - 1>();", "wait_copies<ahead>();", kProduct},
      {"chunks are not where they are looked for",
       "static TILEWISE_DEVICE u32 target(int i) { return Layout::byte_offset(line_of(i),",
       "static TILEWISE_DEVICE u32 target(int i) { return Layout::byte_offset(line_of(i) ^ 2,", kProduct},
      {"one vector too many of k is read",
       "line < left && element < k_left :", "line < left && element <= k_left :", kProduct},
      {"one column too many is written", "return row < rows_left && col < cols_left &&",
       "return row < rows_left && col <= cols_left &&", kProduct},
      {"sums are read while others write them", "core.put(pass, region);\n            sync_warp();",
       "core.put(pass, region);", kProduct}}},
    {"Warpgroups",
     "gemm_bf16_rcr_compv6_cshuffle_intrawave_128x256x64_2x1x1_64x256x16_va8_vb8_vc8_stages4_pers_pw1@sm_90a",
     {{"stages are read before they are there",
       "barrier_wait(ring().ready(at.stage), at.parity);\n            pin_all(sums);", "pin_all(sums);", kWide},
      {"stages are filled while they are read", "wgmma_wait<kOverlaps ? 1 : 0>();", "", kWide},
      {"stages are filled before they are free",
       "barrier_wait(ring.empty(at.stage), at.parity ^ 1);\n        barrier_e", "barrier_e", kWide},
      {"sums are read before they are there", "wgmma_wait<0>();\n        pin_all(sums);", "pin_all(sums);", kWide},
      {"operands are read in another swizzle", "(kLineBytes == 128 ? 1ull : kLineBytes == 64 ? 2ull",
       "(kLineBytes == 128 ? 2ull : kLineBytes == 64 ? 1ull", kWide},
      {"results leave in another swizzle", "offset ^ ((offset >> 7 & kXorMask) << 4)",
       "offset ^ ((offset >> 8 & kXorMask) << 4)", kWide},
      {"results are put where others are still read", "if (me.thread == 0) store_wait_read<1>();", "", kWide},
      {"results leave before all are put", "async_proxy_fence();\n                me.sync();", "async_proxy_fence();",
       kWide},
      {"nobody waits for so many arrivals", "kReleases = 4 *", "kReleases = 5 *", kWide},
      {"more bytes are waited for than come", "barrier_expect(ring.full(at.stage), copied_bytes);",
       "barrier_expect(ring.full(at.stage), copied_bytes + 16);", kWide}}},
    {"Chain",
     "gemm_bf16_rcr_compv6_cshuffle_intrawave_64x64x64_1x1x1_64x64x16_va8_vb8_vc8_stages13_pers_pw1@sm_90a",
     {{"the bias is dropped", "if (op == KernelEpilogueOp::bias) return add_bias();",
       "if (op == KernelEpilogueOp::bias) return;", kChain},
      {"the bias is that of another column", "group % 8 * 4 + lane_index() % 4);",
       "group % 8 * 4 + (lane_index() ^ 1) % 4);", kChain},
      {"D is that of another row", "place.row = rows.row[half], place.col", "place.row = rows.row[0], place.col",
       kChain},
      {"C is not multiplied by beta", "x[i] + args.beta * c[i];", "x[i] + c[i];", kChain}},
     "beta+bias+add+relu"},
    {"Rows",
     "gemm_bf16_rcr_compv6_cshuffle_intrawave_64x64x64_1x1x1_64x64x16_va8_vb8_stages13_pers_pw1@sm_90a",
     {{"rows are not shifted", "chunk.skip = ahead * T::bytes", "chunk.skip = 0", kOdd},
      {"both ends of a row stay away", "ahead > 0 && i * kChunks", "ahead < 0 && i * kChunks", kOdd},
      {"a row's end is another row's", "at < ahead ? at : kColumns - kElements + at", "at", kOdd},
      {"rows leave before all are put",
       "put_results(buffer, results, chunk, me.thread);\n                me.sync();\n                write",
       "put_results(buffer, results, chunk, me.thread);\n                write", kOdd}}},
    {"Channels",
     "grouped_conv_fwd_bf16_nhwgc_2d_compv3_default_intrawave_64x64x64_2x2x1_16x8x16@sm_90a",
     {{"channels of the next pixel are multiplied",
       "return int(count - at < kElements ? count - at : kElements) * T::bytes;", "return kChunkBytes;", kOddChannels},
      {"channels are counted as they are", "return (channels + each - 1) / each * each;", "return channels;",
       kOddChannels}}},
    {"Waves",
     "gemm_bf16_crr_mem_cshuffle_intrawave_64x64x64_2x2x1_32x32x16_va8_vb8_vc8@gfx942",
     {{"tiles are read before all threads have brought their parts",
       "put(registers, shared);\n        sync_shared();\n        load(registers, next);",
       "put(registers, shared);\n        load(registers, next);", kAcross},
      {"tiles are put where others are still read",
       "load(registers, next);\n        multiply(core, 0);\n        sync_shared();",
       "load(registers, next);\n        multiply(core, 0);", kAcross},
      {"elements are turned to another line", "Layout::offset(element_of(i) + e, chunk_of(i)), chunk)",
       "Layout::offset(element_of(i) + (e ^ 1), chunk_of(i)), chunk)", kAcross},
      {"one step too many of k is read", "first_k(i) + j < k_left ? offset[i]", "first_k(i) + j <= k_left ? offset[i]",
       kAcross},
      {"lanes have the sums of others", "return r * kRunCols + lane_index() / kSide * kRun;",
       "return r * kRunCols + lane_index() % 2 * kRun;", kAcross},
      {"the next tile is loaded twice", "multiply_held(core, even, step + 2);", "multiply_held(core, even, step + 1);",
       kAcross}}},
    {"DirectCopies",
     "gemm_bf16_rcr_comp_async_cshuffle_intrawave_64x64x64_2x2x1_32x32x16_va8_vb8_vc8_dsb@gfx942",
     {{"the wait is short by one copy", "later = (ahead - 1) * kCopies;", "later = (ahead - 1) * kCopies + 1;", kLong},
      {"nobody waits for the copies of other waves", "sync_copies<later>();", "wait_copies<later>();", kLong},
      {"copies fill the buffer that is read next", "copy(filling, step + ahead);", "copy(next, step + ahead);", kLong},
      {"chunks are not exchanged",
       "// The exchange is its own inverse.\n        return int(Layout::byte_offset(line, place % kLineBytes) % "
       "kLineBytes);",
       "return int(place % kLineBytes);", kLong},
      {"one piece too many of k is read", "byte_of(i) < k_left * T::bytes ? offset",
       "byte_of(i) <= k_left * T::bytes ? offset", kLong}}},
    {"Turns",
     "gemm_bf16_rcr_compv5_cshuffle_intrawave_64x64x64_2x2x1_32x32x16_va8_vb8_vc8@gfx942",
     {{"a group multiplies while it fetches",
       "load(registers, step + 2);\n            sync_shared();\n            set_priority<1>();",
       "load(registers, step + 2);\n            set_priority<1>();", kLong},
      {"a group fetches before the others have put their parts away", "set_priority<0>();\n            sync_shared();",
       "set_priority<0>();", kLong}}},
    {"Gathered",
     "grouped_conv_bwd_weight_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16_va8_vb8_vc8@gfx942",
     {{"tiles are read before all threads have brought their parts", "sync_shared();  // the tile is there for all", "",
       kWeights},
      {"tiles are put where others are still read", "sync_shared();  // all are done with it", "", kWeights},
      {"one column too many is written", "return row < rows_left && col < cols_left &&",
       "return row < rows_left && col <= cols_left &&", kWeights},
      {"pixels are taken in another order", "source.inner(k, k_there + Count(first_k + run))",
       "source.inner(k, k_there + Count((first_k + run) ^ 1))", kWeights},
      {"the pixel after the last of a line is one of its own", "ends = ends & (next == end[d]);", "ends = false;",
       kWeights}}},
    {"Merged",
     "grouped_conv_bwd_weight_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x32x32_4x1x1_16x16x16_va8_vb8_vc4_merge4@"
     "gfx942",
     {{"sums between groups are kept", "if (by_output.divide(output) != group) continue;", "by_output.divide(output);",
       kNarrowWeights}}},
};

void PrintTo(const BrokenFamily& family, std::ostream* out) { *out << family.kernel; }

// A run of the kernel, broken or not, comes to this: empty, the error or the checker's words.
std::string run_emulated(const Kernel& kernel, const std::string& problem_text, const BuiltKernel& built,
                         Builder& builder, std::uint64_t seed) {
    const Problem problem = *parse_problem(problem_text);
    auto emulated = make_emulated_device(arch_named(kernel.config.arch), seed);
    if (!emulated) return emulated.error().message;
    OtherCode device(**emulated, built);
    auto ready = Executable::prepare(problem, kernel, device, builder);
    if (!ready) return ready.error().message;
    const float beta = problem.beta ? 0.5f : 0.0f;
    auto tensors = Tensors::make(problem, 1);
    if (!tensors) return tensors.error().message;
    auto on_device = DeviceTensors::make(device, *tensors);
    if (!on_device) return on_device.error().message;
    auto bound = BoundRun::make(std::make_shared<const Executable>(std::move(*ready)), device,
                                {&on_device->operands(), 1}, 1.0f, beta);
    if (!bound) return bound.error().message;
    if (auto status = bound->run(); !status) return status.error().message;
    if (auto status = on_device->fetch(); !status) return status.error().message;
    const VerifyReport report = verify_result(*tensors, 1.0f, beta, {});
    return report.ok ? std::string() : describe(report);
}

class BrokenCudaKernel : public testing::TestWithParam<BrokenFamily> {};

TEST_P(BrokenCudaKernel, EveryFaultIsCaught) {
    const auto& [name_of_test, name, faults, chain] = GetParam();
    const Kernel kernel = make_kernel(*parse_kernel_name(name));
    const ArchSpec& arch = arch_named(kernel.config.arch);
    Builder builder(build_settings().value());
    auto request = chain ? build_request(kernel.config, arch, kEmulatedCode, *parse_chain(chain))
                         : build_request(kernel.config, arch, kEmulatedCode);
    ASSERT_TRUE(request.ok()) << request.error().message;
    request->source = flat_source(request->source);
    std::vector<BuildRequest> requests = {*request};
    for (const Fault& fault : faults) requests.push_back(changed(*request, fault));
    const auto built = builder.build_all(requests, 2);
    for (const auto& one : built) ASSERT_TRUE(one.ok()) << one.error().message;
    constexpr std::uint64_t kSeeds = 3;
    for (std::size_t i = 0; i < faults.size(); ++i) {
        EXPECT_EQ(run_emulated(kernel, faults[i].problem, *built[0], builder, i), "") << faults[i].problem;
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
            const std::string found = run_emulated(kernel, faults[i].problem, *built[i + 1], builder, seed);
            EXPECT_NE(found, "") << faults[i].what << ", seed " << seed;
            if (seed == 1) std::printf("%s: %s\n", faults[i].what.c_str(), found.substr(0, found.find('\n')).c_str());
        }
    }
}

// The error of a launch that cannot end is all there is to find the reason by.
TEST(EmulatedGpu, ADeadlockSaysWhoWaitsForWhat) {
    const auto& [name_of_test, name, faults, chain] = kFamilies[1];
    const auto fault =
        std::find_if(faults.begin(), faults.end(), [](const Fault& f) { return f.text == "kReleases = 4 *"; });
    ASSERT_NE(fault, faults.end());
    const Kernel kernel = make_kernel(*parse_kernel_name(name));
    Builder builder(build_settings().value());
    auto request = build_request(kernel.config, arch_named(kernel.config.arch), kEmulatedCode);
    ASSERT_TRUE(request.ok()) << request.error().message;
    request->source = flat_source(request->source);
    const auto built = builder.build(changed(*request, *fault));
    ASSERT_TRUE(built.ok()) << built.error().message;
    const std::string found = run_emulated(kernel, kWide, *built, builder, 1);
    EXPECT_NE(found.find("no thread can go on"), std::string::npos) << found;
    EXPECT_NE(found.find("threads 0 to 0: wait for the transaction barrier at address"), std::string::npos) << found;
    EXPECT_NE(found.find("threads 1 to 127: at their end"), std::string::npos) << found;
}

// A machine without a compiler runs what it has: the code for every epilogue, for plain problems without a word.
TEST(EmulatedGpu, WithoutACompilerTheCodeForEveryEpilogueServes) {
    const Kernel kernel = make_kernel(*parse_kernel_name(kFamilies[2].kernel));
    auto device = make_emulated_device(arch_named(kernel.config.arch), 1);
    ASSERT_TRUE(device.ok()) << device.error().message;
    BuildSettings settings = build_settings().value();
    Builder builder(settings);
    const auto any = build_request(kernel.config, **device);
    ASSERT_TRUE(builder.build(*any).ok());
    settings.compiler = "/nonexistent/c++";
    Builder without(settings);
    settings.exact_epilogues = false;
    Builder for_any(settings);
    // No other test has these chains.
    const Problem plain = *parse_problem(kWide), fused = *parse_problem(kWide + ",epilogue=bias+tanh+tanh+relu6");

    const auto code = [&](const Problem& problem, Builder& with) {
        return choose_code(problem, kernel.config, **device, with).value();
    };
    EXPECT_NE(code(fused, builder).request, *any) << "there is a compiler";
    EXPECT_FALSE(code(fused, builder).falls_back);
    EXPECT_EQ(code(fused, without).request, *any);
    EXPECT_TRUE(code(fused, without).falls_back);
    EXPECT_FALSE(code(plain, without).falls_back);
    EXPECT_EQ(code(fused, for_any).request, *any);
    EXPECT_FALSE(code(fused, for_any).falls_back) << "it was asked for";
    const auto ready = Executable::prepare(fused, kernel, **device, without);
    ASSERT_TRUE(ready.ok()) << ready.error().message;
    ASSERT_EQ(ready->notes().size(), 1u);
    EXPECT_NE(ready->notes()[0].message.find("bias+tanh+tanh+relu6"), std::string::npos);
    EXPECT_TRUE(is_code_of(ready->built().digest, fused, kernel.config, **device));
    EXPECT_FALSE(
        is_code_of(*digest_of(*build_request(kernel.config, **device, Chain{})), fused, kernel.config, **device));
}

INSTANTIATE_TEST_SUITE_P(Kernels, BrokenCudaKernel, testing::ValuesIn(kFamilies),
                         [](const auto& family) { return std::string(family.param.name); });

}  // namespace
}  // namespace tilewise
