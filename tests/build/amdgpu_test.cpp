// SPDX-License-Identifier: MIT
// HIP kernels compile on a machine without a GPU: real code objects, which say what they are for and what they need. Compilers that only
// pretend to be clang show which one is taken, and which message follows when none will do.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "build/amdgpu_object.hpp"
#include "build/build_testing.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"
#include "build/kept_cache.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "family/family.hpp"
#include "run/kernel_code.hpp"

namespace tilewise {
namespace {

using build_testing::BuildTest;
using build_testing::Variable;

class AmdClang : public BuildTest {
protected:
    // A shell script that says it is clang of this version and knows these chips; otherwise it does as told.
    std::string fake_clang(const std::string& name, int version, const std::string& chips,
                           const std::string& body = "exit 1") const {
        const std::string path = at(name);
        std::ofstream(path) << "#!/bin/sh\ncase \"$*\" in *-dM*) echo '#define __clang_major__ " << version
                            << "';; *supported-cpus*) printf '" << chips << "';; *) " << body << ";; esac\n";
        chmod(path.c_str(), 0755);
        return path;
    }
    static BuildRequest request_of(const char* name, const std::string& arch) {
        const auto config = parse_kernel_name(fmt::format("{}@{}", name, arch));
        return build_request(config.value(), **embedded_archs().find(arch), kHsaco, std::nullopt).value();
    }
    std::string failure(const std::string& arch) {
        Builder builder(settings_);
        const auto built = builder.build(
            request_of("gemm_bf16_rcr_compv3_cshuffle_intrawave_64x64x64_2x2x1_32x32x16_va8_vb8_vc8", arch));
        if (built) return "built";
        EXPECT_EQ(built.error().code, ErrorCode::toolchain);
        return built.error().message;
    }
};

constexpr const char* kChips = "\\tgfx90a\\n\\tgfx942\\n";

TEST_F(AmdClang, TheNewestOnPathIsTaken) {
    const Variable path("PATH", root_), rocm("ROCM_PATH", at("rocm"));
    fake_clang("clang++-19", 19, kChips), fake_clang("clang++-21", 21, kChips), fake_clang("clang++", 23, kChips);
    const auto found = find_toolchain(kHsaco, settings_);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(found->path, at("clang++-21"));
    EXPECT_EQ(found->version, "21.0.0");
    std::filesystem::create_directories(at("rocm/llvm/bin"));
    fake_clang("rocm/llvm/bin/clang++", 20, kChips);
    EXPECT_EQ(find_toolchain(kHsaco, settings_)->path, at("rocm/llvm/bin/clang++"));
    settings_.amdclang = at("clang++-19");
    EXPECT_EQ(find_toolchain(kHsaco, settings_)->path, at("clang++-19"));
}

TEST_F(AmdClang, WithoutOneTheErrorSaysWhatIsNeeded) {
    const Variable path("PATH", root_), rocm("ROCM_PATH", at("rocm"));
    const auto none = find_toolchain(kHsaco, settings_);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::toolchain);
    for (const char* part : {"clang 19 or newer", "gfx950", "TILEWISE_AMDCLANG", "clang++-19"}) {
        EXPECT_NE(none.error().message.find(part), std::string::npos) << none.error().message;
    }
    fake_clang("clang++", 14, kChips);
    EXPECT_NE(failure("gfx942").find("14.0.0"), std::string::npos) << failure("gfx942");
    fake_clang("clang++", 22, "");
    EXPECT_NE(failure("gfx942").find("without the AMDGPU target"), std::string::npos) << failure("gfx942");
    settings_.amdclang = "no-such-clang";
    EXPECT_NE(failure("gfx942").find("no-such-clang"), std::string::npos) << failure("gfx942");
}

TEST_F(AmdClang, OneThatDoesNotKnowTheChipSaysSo) {
    settings_.amdclang = fake_clang("old", 19, kChips);
    const std::string message = failure("gfx950");
    for (const char* part : {"19.0.0", "does not know gfx950", "22 for gfx950"}) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
    }
}

TEST_F(AmdClang, WhatIsNoCodeObjectIsRefused) {
    settings_.amdclang = fake_clang("odd", 22, kChips, "for last; do :; done; echo junk > $last");
    EXPECT_NE(failure("gfx942").find("no code object of an AMD GPU"), std::string::npos) << failure("gfx942");
}

// One of each kind of element, main loop and layout; the others are the same templates.
constexpr const char* kConfigs[] = {
    "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va8_vb8_vc8",
    "gemm_fp16_crr_compv4_cshuffle_intrawave_64x64x64_2x2x1_16x16x32_va8_vb8_vc8_dsb",
    "gemm_fp32_rcr_basic_v1_default_intrawave_64x64x32_2x2x1_16x16x16_va4_vb4_vc4",
    "gemm_int8_rcr_compv3_cshuffle_intrawave_64x64x128_2x2x1_32x32x16_va16_vb16_vc4",
};

TEST_F(AmdClang, KernelsCompileForEveryArch) {
    if (auto found = find_toolchain(kHsaco, build_settings().value()); !found) GTEST_SKIP() << found.error().message;
    std::vector<BuildRequest> requests;
    for (const std::string arch : {"gfx90a", "gfx942", "gfx950"}) {
        for (const char* name : kConfigs) {
            const auto config = parse_kernel_name(fmt::format("{}@{}", name, arch));
            ASSERT_TRUE(config.ok()) << config.error().message;
            Rejected why;
            ASSERT_TRUE(has_code(*config, **embedded_archs().find(arch), &why)) << name << ' ' << why.rule;
            requests.push_back(request_of(name, arch));
        }
    }
    settings_.cache_dir = build_testing::kept_cache(settings_.cache_dir);
    Builder builder(settings_);
    const auto built = builder.build_all(requests, 2);
    for (std::size_t i = 0; i < built.size(); ++i) {
        SCOPED_TRACE(requests[i].name);
        ASSERT_TRUE(built[i].ok()) << built[i].error().message;
        ASSERT_TRUE(built[i]->manifest.resources.has_value());
        const KernelResources& needs = *built[i]->manifest.resources;
        EXPECT_GT(needs.registers, 32);
        EXPECT_LE(needs.registers, 512);
        EXPECT_EQ(needs.local_bytes, 0);
        std::string object = read_file(built[i]->path).value();
        EXPECT_TRUE(check_amdgpu_object(object, requests[i].arch).ok());
        const auto other = check_amdgpu_object(object, requests[i].arch == "gfx942" ? "gfx90a" : "gfx942");
        ASSERT_FALSE(other.ok());
        EXPECT_NE(other.error().message.find(requests[i].arch), std::string::npos) << other.error().message;
        // Cut anywhere it is refused, and nothing is read beyond its end.
        for (std::size_t size = 0; size < object.size(); size += object.size() / 40) {
            EXPECT_FALSE(amdgpu_resources(std::string(object, 0, size)).ok()) << size;
            EXPECT_FALSE(check_amdgpu_object(std::string(object, 0, size), requests[i].arch).ok()) << size;
        }
        object.replace(object.find("tilewise_kernel.kd"), 8, "tilewisE");
        while (object.find("tilewise_kernel.kd") != std::string::npos) {
            object.replace(object.find("tilewise_kernel.kd"), 8, "tilewisE");
        }
        EXPECT_FALSE(check_amdgpu_object(object, requests[i].arch).ok());
    }
}

// Loads from addresses that lanes may have of their own: a loop that ends with the lanes that are left (s_xor_b64 exec, exec, s) and goes
// back while there are some (s_cbranch_execnz). Before the lanes return, clang 22 puts copies of registers there, which copy nothing.
int loops_over_lanes(std::string_view object) {
    int loops = 0;
    std::uint32_t words[2];
    for (std::size_t at = 0; at + sizeof words <= object.size(); at += sizeof words[0]) {
        std::memcpy(words, object.data() + at, sizeof words);
        loops += (words[0] & 0xffff00ff) == 0x88fe007e && (words[1] & 0xffff8000) == 0xbf898000;
    }
    return loops;
}

TEST_F(AmdClang, TilesOfConvolutionsHaveAddressesOfTheWave) {
    if (auto found = find_toolchain(kHsaco, build_settings().value()); !found) GTEST_SKIP() << found.error().message;
    std::vector<BuildRequest> requests;
    for (const char* name :
         {"fwd_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16_va8_vb8_vc8",
          "bwd_data_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16_va8_vb8_vc8",
          "bwd_data_fp16_nhwgc_2d_compv4_cshuffle_intrawave_64x64x32_2x2x1_16x16x16_va8_vb8_vc8_dsb",
          "bwd_weight_bf16_nhwgc_2d_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16_va8_vb8_vc8"}) {
        requests.push_back(request_of(fmt::format("grouped_conv_{}", name).c_str(), "gfx942"));
    }
    settings_.cache_dir = build_testing::kept_cache(settings_.cache_dir);
    Builder builder(settings_);
    for (const auto& built : builder.build_all(requests, 2)) {
        ASSERT_TRUE(built.ok()) << built.error().message;
        EXPECT_EQ(loops_over_lanes(read_file(built->path).value()), 0) << built->manifest.kernel;
    }
}

}  // namespace
}  // namespace tilewise
