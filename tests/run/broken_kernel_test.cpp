// SPDX-License-Identifier: MIT
// The checker checked: real kernels with one small fault each must not pass. A checker that lets one of them through would
// let the same mistake through in the registry.
#include "run/broken_kernel.hpp"

#include <fmt/core.h>

#include <span>

#include "build/kept_cache.hpp"
#include "run/run_testing.hpp"

namespace tilewise {
namespace {

using namespace run_testing;

const std::string kSmall = "gemm:m=13,n=21,k=9,dtype=fp32,layout=rcr";
const std::string kFused = "gemm:m=13,n=21,k=9,dtype=fp32,layout=rcr,epilogue=bias+relu,d=mul";

const Fault kFaults[] = {
    {"the last k is left out", "k < units; ++k", "k < units - 1; ++k", kSmall},
    {"the product has fewer bits than fp32", "fma(as_float(a), as_float(b), acc)",
     "fma(as_float(a & 0xffff0000u), as_float(b), acc)", kSmall},
    {"alpha is ignored", "v.factor = args.alpha;", "v.factor = 1;", kSmall},
    {"C is taken off instead of added", "x += beta * read_values", "x -= beta * read_values",
     "gemm:m=13,n=21,k=9,dtype=fp32,layout=rcr,beta=1"},
    {"C is read although beta is zero", "if (beta != 0.0f) each(", "if (beta == beta) each(", kSmall},
    {"the last column is not written", "whole, rows, cols - whole);", "whole, rows, cols - whole - 1);", kSmall},
    {"one column too many is written", "whole, rows, cols - whole);", "whole, rows, cols - whole + 1);", kSmall},
    {"the vector behind the groups is left out", "q < vectors; ++q", "q + 1 < vectors; ++q", kSmall},
    {"relu keeps what it should drop", "select(x < 0, V{}, x)", "select(x > 0, V{}, x)", kFused},
    {"D is added instead of multiplied", "x *= read_values<Out, V>(d", "x += read_values<Out, V>(d", kFused},
    {"all vectors of a group take the first one's D", "x *= read_values<Out, V>(d + q * next",
     "x *= read_values<Out, V>(d", kFused},
    {"the bias begins one column late", "view.bias_by_col + j * kBytes<Out>",
     "view.bias_by_col + (j + 1) * kBytes<Out>", kFused},
};

const std::string kConv = "conv_bwd_data:n=2,g=2,c=6,k=10,in=9x8,filter=3x3,stride=2x1,pad=1x1,dtype=fp32";

const Fault kConvFaults[] = {
    {"what lies right of the image is not cleared", "clear_clipped(to, copy_end, k + line, count);", "", kConv},
    {"the second image is read from the first", "p + at.image * shape.image_stride", "p + 0 * shape.image_stride",
     kConv},
    {"a residue class takes the next class's taps", "(at - dim.tap_first * dilation) % s != 0",
     "(at + 1 - dim.tap_first * dilation) % s != 0", kConv},
    {"rows of a class lie side by side", "task.out.row_stride *= c.walk.dim[2].out_step", "task.out.row_stride *= 1",
     "conv_bwd_data:n=1,g=1,c=6,k=10,in=9x8,filter=3x3,stride=1x2,pad=1x1,dtype=fp32"},
    {"all groups take the weights of the first", "p = all + group * args.conv.k * filter", "p = all", kConv},
};

// With an alpha of 1 these chains end in registers where a tile is whole and has all of k, else in one pass down its columns.
const std::string kShort = "gemm:m=13,n=21,k=120,dtype=fp32,layout=rcr,epilogue=bias+add+relu6";

const Fault kShortFaults[] = {
    {"a register tile takes the first columns' bias", "bias[j] = ending.bias ? load<F>(ending.bias + j * kLanes)",
     "bias[j] = ending.bias ? load<F>(ending.bias)", kShort},
    {"all rows of a register tile take the first one's D", "if (d) walk(d, c_stride);", "", kShort},
    {"a register tile keeps what relu should drop", "sums[i][j] = limited(x, low, high);",
     "sums[i][j] = limited(x, -high, high);", kShort},
    {"a register tile has no upper limit", "sums[i][j] = limited(x, low, high);",
     "sums[i][j] = select(x < low, low, x);", kShort},
    {"a tile of part of k ends in registers", "task.limited && !several_k &&", "task.limited &&",
     "gemm:m=13,n=21,k=300,dtype=fp32,layout=rcr,epilogue=bias+relu"},
    {"a narrow tile has no bias",
     "if (bias) column.bias =", "if (bias && column.lanes == kWidth) column.bias =", kShort},
    {"a narrow tile takes D from its first row", "sums += stride, column.d += column.row_bytes;", "sums += stride;",
     kShort},
    {"a narrow tile keeps what relu should drop", "limited(next(), column.low, column.high)",
     "limited(next(), -column.high, column.high)", kShort},
    {"the activation is left out", "activate_all(column.activation, held, count);", "",
     "gemm:m=13,n=21,k=9,dtype=fp32,layout=rcr,epilogue=bias+silu"},
};

const std::string kDepthwise = "conv_fwd:n=2,g=21,c=21,k=21,in=9x8,filter=7x7,pad=3x3,dtype=fp32,epilogue=bias+relu6";

const Fault kDirectFaults[] = {
    {"all vectors take the first one's bias", "task.bias + v * kLanes * kBytes<Out>", "task.bias", kDepthwise},
    {"all blocks of channels take the first one's bias", "image_out.bias_by_col + channel * kBytes<Out>",
     "image_out.bias_by_col", kDepthwise},
    {"relu6 has no upper limit", "limited(sums.v[p][v] + bias, low, high)",
     "limited(sums.v[p][v] + bias, low, 9 * high)", kDepthwise},
    {"vectors behind the eighth are left out", "i < rows; i += kActivatedVectors",
     "i < 8 && i < rows; i += kActivatedVectors",
     "conv_fwd:n=1,g=5,c=5,k=5,in=3x20,filter=3x3,pad=1x1,dtype=fp32,epilogue=silu"},
};

// Gathers, so that all of its parts are used.
Kernel conv_kernel(std::string_view op, std::string_view option = "") {
    return make_kernel(*parse_kernel_name(
        fmt::format("grouped_{}_fp32_any_2d_mem_default_intrawave_48x128x128_1x1x1_4x8x1{}@cpu-generic", op, option)));
}

Kernel depthwise_kernel() {
    return make_kernel(*parse_kernel_name(
        "grouped_conv_fwd_fp32_any_2d_basic_v1_default_intrawave_28x64x1_1x1x1_7x8x1_spec-depthwise@cpu-generic"));
}

class BrokenKernelTest : public RunTest {
protected:
    void SetUp() override {
        RunTest::SetUp();
        settings_.cache_dir = build_testing::kept_cache(settings_.cache_dir);
    }
    BuildRequest flat_request(const Kernel& kernel) const {
        auto request = *build_request(kernel.config, *device_);
        request.source = flat_source(request.source);
        return request;
    }
    VerifyReport run_on(const Kernel& kernel, const std::string& problem_text, const BuiltKernel& built,
                        Builder& builder, float alpha_times = kAlpha) {
        const Problem problem = *parse_problem(problem_text);
        OtherCode device(*device_, built);
        auto ready = Executable::prepare(problem, kernel, device, builder);
        EXPECT_TRUE(ready.ok()) << ready.error().message;
        const auto report = checked_run(problem, std::move(*ready), alpha_times);
        EXPECT_TRUE(report.ok()) << report.error().message;
        return *report;
    }
};

TEST_F(BrokenKernelTest, EveryFaultIsCaught) {
    struct Family {
        Kernel kernel;
        std::span<const Fault> faults;
        float alpha_times = kAlpha;
    };
    const Family families[] = {{small_kernel(), kFaults},
                               {conv_kernel("conv_bwd_data"), kConvFaults},
                               {small_kernel(), kShortFaults, 1.0f},
                               {depthwise_kernel(), kDirectFaults, 1.0f}};
    Builder builder(settings_);
    for (const auto& [kernel, faults, alpha_times] : families) {
        std::vector<BuildRequest> requests = {flat_request(kernel)};
        for (const Fault& fault : faults) requests.push_back(changed(requests.front(), fault));
        const auto built = builder.build_all(requests, 2);
        for (const auto& one : built) ASSERT_TRUE(one.ok()) << one.error().message;
        for (std::size_t i = 0; i < faults.size(); ++i) {
            const VerifyReport as_it_is = run_on(kernel, faults[i].problem, *built[0], builder, alpha_times);
            EXPECT_TRUE(as_it_is.ok) << faults[i].problem << ": " << describe(as_it_is);
            const VerifyReport report = run_on(kernel, faults[i].problem, *built[i + 1], builder, alpha_times);
            EXPECT_FALSE(report.ok) << faults[i].what << " on " << faults[i].problem << ": " << describe(report);
        }
    }
}

// Chunks of images come to be beyond 2^31 elements only; a smaller limit shows that they are right.
TEST_F(BrokenKernelTest, ImagesAreTakenInChunks) {
    const Fault small_chunks = {
        "a small limit", "kSplitImageElements = Index(1) << 31", "kSplitImageElements = Index(1) << 10", {}};
    Builder builder(settings_);
    for (const std::string op : {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"}) {
        const Kernel kernel = conv_kernel(op, "_splitimage");
        const auto built = builder.build(changed(flat_request(kernel), small_chunks));
        ASSERT_TRUE(built.ok()) << built.error().message;
        for (const std::string_view rest : {"", ",beta=1", ",layout=ngchw"}) {
            const std::string problem =
                fmt::format("{}:n=7,g=2,c=6,k=4,in=9x11,filter=3x3,stride=2x1,pad=1x1,dtype=fp32{}", op, rest);
            const VerifyReport report = run_on(kernel, problem, *built, builder);
            EXPECT_TRUE(report.ok) << problem << ": " << describe(report);
        }
    }
}

}  // namespace
}  // namespace tilewise
