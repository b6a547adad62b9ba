// SPDX-License-Identifier: MIT
// The kernels that check results on a GPU compile for every CUDA arch; running them takes a GPU (tests/gpu/verify_test.cpp).
// Skips where there is no NVRTC.
#include "measure/check_kernel.hpp"

#include "build/build_testing.hpp"
#include "build/nvrtc.hpp"
#include "config/archs.hpp"

namespace tilewise {
namespace {

using CheckKernelTest = build_testing::BuildTest;

// Blocks of the reference on a multiprocessor need this many, of 65536, for two to fit.
constexpr int kMostRegisters = 128;

TEST_F(CheckKernelTest, CompilesForEveryCudaArch) {
    if (const auto found = find_nvrtc("", std::nullopt); !found) GTEST_SKIP() << found.error().message;
    Builder builder(settings_);
    int archs = 0;
    for (const ArchSpec& arch : embedded_archs().archs()) {
        if (arch.backend != Backend::cuda) continue;
        ++archs;
        std::vector<BuildRequest> requests = {fill_request(arch), reference_request(arch, Op::gemm, true)};
        for (const Op op : {Op::gemm, Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight}) {
            requests.push_back(reference_request(arch, op, false));
        }
        for (const BuildRequest& request : requests) {
            const auto kernel = builder.build(request);
            ASSERT_TRUE(kernel.ok()) << request.name << ": " << kernel.error().message;
            ASSERT_TRUE(kernel->manifest.resources.has_value());
            RecordProperty(request.name + "_registers", static_cast<int>(kernel->manifest.resources->registers));
            RecordProperty(request.name + "_local_bytes", static_cast<int>(kernel->manifest.resources->local_bytes));
            if (!request.name.starts_with("check_reference_squares")) {
                EXPECT_LE(kernel->manifest.resources->registers, kMostRegisters);
            }
        }
    }
    EXPECT_GE(archs, 2);
}

}  // namespace
}  // namespace tilewise
