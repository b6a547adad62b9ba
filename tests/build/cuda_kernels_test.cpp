// SPDX-License-Identifier: MIT
// CUDA kernels compile on a machine without a GPU, and what the compiler says they need is within the arch file: registers
// of all threads of a block, shared memory, nothing in local memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "build/builder.hpp"
#include "build/nvrtc.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/geometry.hpp"
#include "config/rule_set.hpp"
#include "family/family.hpp"
#include "family/launch_spec.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

struct CudaKernels : testing::TestWithParam<const char*> {
    void SetUp() override {
        settings = build_settings().value();
        if (auto found = find_nvrtc(settings.nvrtc, std::nullopt); !found) GTEST_SKIP() << found.error().message;
        folder = std::filesystem::temp_directory_path() / ("tilewise-cuda-" + std::to_string(getpid()));
        settings.cache_dir = folder;
        settings.packs.clear();
    }
    void TearDown() override { std::filesystem::remove_all(folder); }

    BuildSettings settings;
    std::string folder;
};

TEST_P(CudaKernels, TheTinySetCompilesWithinTheArch) {
    const ArchSpec& arch = **embedded_archs().find(GetParam());
    std::vector<KernelConfig> configs;
    std::vector<BuildRequest> requests;
    for (const DType dtype : {DType::bf16, DType::fp32, DType::fp8, DType::int8}) {  // fp16 has the templates of bf16
        if (!arch.find_warp_tiles({dtype, dtype})) continue;
        const auto tiny = expand(arch, Op::gemm, {dtype, dtype}, RuleSet::tiny, std::nullopt);
        ASSERT_TRUE(tiny.ok());
        // Every fourth: `make test-gpu` runs all of them.
        for (std::size_t i = 0; i < tiny->size(); i += 4) {
            const KernelConfig& config = (*tiny)[i];
            if (!has_code(config, arch)) continue;
            configs.push_back(config);
            requests.push_back(build_request(config, arch, kCubin).value());
        }
    }
    ASSERT_GE(configs.size(), 8u);
    Builder builder(settings);
    const auto built = builder.build_all(requests, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
    for (std::size_t i = 0; i < built.size(); ++i) {
        SCOPED_TRACE(kernel_name(configs[i]));
        ASSERT_TRUE(built[i].ok()) << built[i].error().message;
        ASSERT_TRUE(built[i]->manifest.resources.has_value());
        const KernelResources& needs = *built[i]->manifest.resources;
        const LaunchSpec block = launch_spec(configs[i], arch);
        EXPECT_GT(needs.registers, 0);
        EXPECT_LE(needs.registers * block.threads, arch.registers);
        // Hopper has mma.sync of 8-bit floats by making fp16 of them, which takes registers: a little is left over.
        const bool converts = is_8bit_float(configs[i].dtype) && !has_wide_waves(configs[i], arch);
        constexpr int kFewWords = 64;  // that the loop does not touch: what a compiler leaves over of 255 registers
        EXPECT_LE(needs.local_bytes, converts ? 128 : kFewWords);
        EXPECT_LE(needs.shared_bytes + block.shared_bytes, arch.shared_bytes);
    }
}

INSTANTIATE_TEST_SUITE_P(Archs, CudaKernels, testing::Values("sm_80", "sm_90a"),
                         [](const auto& arch) { return std::string(arch.param); });

}  // namespace
}  // namespace tilewise
