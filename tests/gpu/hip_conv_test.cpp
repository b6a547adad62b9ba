// SPDX-License-Identifier: MIT
// Convolution kernels for AMD GPUs, one of every kind: directions, layouts, types, ways of operands to shared memory, merged groups,
// parts of the reduction, depthwise. Sizes are odd, and tiles not full. Runs where the device is one, as a rule emulated.
#include "config/config_name.hpp"
#include "gpu/gpu_testing.hpp"
#include "registry/registry.hpp"

namespace tilewise {
namespace {

struct Case {
    const char* kernel;  // without the arch
    const char* problem;
};

const Case kCases[] = {
    // Chunks of 16 bytes, turned around where they lie across k.
    {"grouped_conv_fwd_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16_va8_vb8_vc8",
     "conv_fwd:n=2,g=2,c=48,k=80,in=9x7,filter=3x3,stride=2x1,pad=1:0x2:1,dilation=1x2,dtype=bf16,layout=nhwgc,"
     "epilogue=bias+relu,beta=1"},
    {"grouped_conv_bwd_data_fp16_nhwgc_2d_compv4_cshuffle_intrawave_64x64x32_2x2x1_16x16x16_va8_vb8_vc8_dsb",
     "conv_bwd_data:n=2,g=2,c=80,k=48,in=9x7,filter=3x3,stride=2x1,pad=1x1,dtype=fp16,layout=nhwgc"},
    {"grouped_conv_bwd_weight_bf16_ndhwgc_3d_mem_cshuffle_intrawave_64x64x32_2x2x1_32x32x16_va8_vb8_vc8_splitk4",
     "conv_bwd_weight:n=2,g=1,c=24,k=72,in=5x6x7,filter=2x3x2,stride=1x2x1,pad=1x1x0,dtype=bf16,layout=ndhwgc"},
    // Elements that begin anywhere.
    {"grouped_conv_fwd_bf16_nwgc_1d_basic_v1_default_intrawave_64x64x32_2x2x1_32x32x16",
     "conv_fwd:n=3,g=3,c=33,k=39,in=29,filter=5,stride=2,pad=2,dtype=bf16,layout=nwgc"},
    {"grouped_conv_bwd_data_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16",
     "conv_bwd_data:n=1,g=1,c=13,k=21,in=8x9,filter=3x3,stride=2x2,pad=1x1,dtype=bf16,layout=nhwgc"},
    {"grouped_conv_bwd_weight_fp16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16_twostage",
     "conv_bwd_weight:n=2,g=3,c=21,k=15,in=9x9,filter=3x3,pad=1x1,dtype=fp16,layout=nhwgc"},
    // Channels first.
    {"grouped_conv_fwd_fp32_ngchw_2d_compv3_cshuffle_intrawave_64x64x16_2x2x1_32x32x4",
     "conv_fwd:n=2,g=1,c=11,k=70,in=7x6,filter=3x3,pad=1x1,dtype=fp32,layout=ngchw"},
    {"grouped_conv_bwd_weight_bf16_ngchw_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16",
     "conv_bwd_weight:n=2,g=2,c=10,k=14,in=7x6,filter=3x3,pad=1x1,dtype=bf16,layout=ngchw"},
    // Elements of 8 bits; an operand that is written out first; images of any size.
    {"grouped_conv_fwd_int8_nhwgc_2d_compv3_cshuffle_intrawave_64x64x64_2x2x1_32x32x16_va16_vb16_vc4",
     "conv_fwd:n=1,g=1,c=48,k=68,in=9x8,filter=3x3,pad=1x1,dtype=int8,layout=nhwgc"},
    {"grouped_conv_bwd_data_fp8_nhwgc_2d_compv3_cshuffle_intrawave_64x64x64_2x2x1_32x32x16_va16_vb16_vc8",
     "conv_bwd_data:n=1,g=1,c=64,k=48,in=9x8,filter=3x3,pad=1x1,dtype=fp8,layout=nhwgc"},
    {"grouped_conv_bwd_weight_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16_va8_vb8_vc8_explicit",
     "conv_bwd_weight:n=2,g=2,c=48,k=80,in=7x6,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc"},
    // Merged groups.
    {"grouped_conv_fwd_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x32x32_4x1x1_16x16x16_va8_vb4_vc8_merge8",
     "conv_fwd:n=2,g=16,c=64,k=64,in=9x7,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc,epilogue=bias"},
    {"grouped_conv_bwd_data_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x32x32_4x1x1_16x16x16_va8_vb4_vc8_merge4",
     "conv_bwd_data:n=1,g=8,c=32,k=64,in=9x7,filter=3x3,stride=2x1,pad=1x1,dtype=bf16,layout=nhwgc"},
    {"grouped_conv_bwd_weight_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x32x32_4x1x1_16x16x16_va8_vb8_vc4_merge4",
     "conv_bwd_weight:n=2,g=8,c=32,k=64,in=9x7,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc"},
    // Depthwise.
    {"grouped_conv_fwd_bf16_nhwgc_2d_basic_v1_default_intrawave_256x32x1_4x1x1_32x32x1_va4_vc4_spec-depthwise_"
     "filter3x3_"
     "stride1x1_dilation1x1",
     "conv_fwd:n=2,g=44,c=44,k=44,in=9x7,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc,epilogue=bias+relu"},
    {"grouped_conv_bwd_data_fp32_nhwgc_2d_basic_v1_default_intrawave_256x32x1_4x1x1_32x32x1_va4_vc4_spec-depthwise_"
     "filter3x3_"
     "stride2x2_dilation1x1",
     "conv_bwd_data:n=1,g=36,c=36,k=36,in=9x7,filter=3x3,stride=2x2,pad=1x1,dtype=fp32,layout=nhwgc"},
    {"grouped_conv_bwd_weight_bf16_nhwgc_2d_basic_v1_default_intrawave_256x32x1_4x1x1_32x32x1_va4_vb4_splitk16_spec-"
     "depthwise_filter3x3_"
     "stride1x1_dilation1x1",
     "conv_bwd_weight:n=2,g=44,c=44,k=44,in=9x7,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc"},
    {"grouped_conv_fwd_fp16_ngcw_1d_basic_v1_default_intrawave_32x64x1_4x1x1_8x64x1_spec-depthwise",
     "conv_fwd:n=2,g=37,c=37,k=74,in=19,filter=4,stride=2,pad=1,dilation=2,dtype=fp16,layout=ngcw"},
    {"grouped_conv_bwd_weight_bf16_nhwgc_2d_basic_v1_default_intrawave_32x64x1_4x1x1_8x64x1_splitk32_spec-depthwise",
     "conv_bwd_weight:n=2,g=71,c=71,k=71,in=9x7,filter=4x3,stride=2x1,pad=1x1,dtype=bf16,layout=nhwgc"},
};

class HipConv : public GpuTest {};

TEST_F(HipConv, EveryKindMatchesTheReference) {
    if (device->arch().backend != Backend::hip) GTEST_SKIP() << "kernels for AMD GPUs";
    for (const Case& each : kCases) {
        SCOPED_TRACE(each.kernel);
        const auto config = parse_kernel_name(std::string(each.kernel) + "@" + device->arch().name);
        const auto problem = parse_problem(each.problem);
        ASSERT_TRUE(config.ok() && problem.ok()) << (config.ok() ? problem.error() : config.error()).message;
        const Kernel kernel = make_kernel(*config);
        Rejected why;
        ASSERT_TRUE(has_code(*config, device->arch(), &why)) << why.rule << ": " << why.have << "; " << why.need;
        check({std::make_shared<const Kernel>(kernel)}, [&](Random&, const KernelConfig&) { return *problem; });
    }
}

}  // namespace
}  // namespace tilewise
