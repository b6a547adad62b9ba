// SPDX-License-Identifier: MIT
// HIP kernels by hiprtc: where it is taken, what it builds, and what is said where it is missing, too old or does not compile. It is a
// library of the tests' own (tests/build/hiprtc), which has clang behind it.
#include "build/hiprtc.hpp"

#include <fmt/core.h>

#include "build/amdgpu_object.hpp"
#include "build/build_testing.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "run/kernel_code.hpp"

namespace tilewise {
namespace {

using namespace build_testing;

constexpr const char* kKernel = "gemm_bf16_rcr_compv3_cshuffle_intrawave_64x64x64_2x2x1_32x32x16_va8_vb8_vc8";

BuildRequest request_for(const std::string& arch) {
    const auto config = parse_kernel_name(fmt::format("{}@{}", kKernel, arch));
    return build_request(config.value(), **embedded_archs().find(arch), kHsaco, std::nullopt).value();
}

// Each test has a copy under a name of its own, which is a library of its own to the loader.
class HiprtcTest : public BuildTest {
protected:
    std::string copy_as(const std::string& name) const {
        const fs::path built =
            fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "fake-hiprtc/libhiprtc.so.7";
        EXPECT_TRUE(fs::copy_file(built, at(name)));
        return at(name);
    }
    static bool has_clang() { return program_on_path("clang++-22").has_value(); }
    std::string failure(const std::string& arch) const {
        const auto built = Builder(settings_).build(request_for(arch));
        if (built) return "built";
        EXPECT_EQ(built.error().code, ErrorCode::toolchain);
        return built.error().message;
    }
};

void expect_all(const std::string& text, std::initializer_list<std::string> parts) {
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(HiprtcTest, IsTakenWhereItIsNamedAndClangIsNot) {
    settings_.hiprtc = copy_as("libhiprtc.so.7.0.51831");
    const auto found = find_toolchain(kHsaco, settings_);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(*found, (Toolchain{settings_.hiprtc, "hiprtc", "7.0.51831"}));
    settings_.amdclang = "/nowhere/clang++";
    EXPECT_NE(find_toolchain(kHsaco, settings_).error().message.find("/nowhere/clang++"), std::string::npos);
}

// In a process that has none yet. The loader knows it by the name that the file has for itself, libhiprtc.so.7.
TEST_F(HiprtcTest, DISABLED_WithoutClang) {
    const Variable path("PATH", root_), rocm("ROCM_PATH", at("rocm"));
    const auto none = find_toolchain(kHsaco, settings_);
    if (!none) {  // else ROCm is here
        expect_all(none.error().message,
                   {"clang 19 or newer", "no hiprtc", "libhiprtc.so.7", "libhiprtc.so.6", "TILEWISE_HIPRTC"});
    }
    void* const library = dlopen(copy_as("libhiprtc.so.6.4.43482").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    const auto found = find_toolchain(kHsaco, settings_);
    ASSERT_TRUE(found.ok()) << found.error().message;
    if (!none) {
        EXPECT_EQ(*found, (Toolchain{at("libhiprtc.so.6.4.43482"), "hiprtc", "6.4.43482"}));
    }
}

TEST_F(HiprtcTest, OneThatTheProcessHasIsTakenWhereThereIsNoClang) {
    EXPECT_EQ(exit_code(start_again("HiprtcTest.DISABLED_WithoutClang", {})), 0);
}

TEST_F(HiprtcTest, BuildsWhatClangBuilds) {
    if (!has_clang()) GTEST_SKIP() << "clang 22 is not installed";
    settings_.hiprtc = copy_as("libhiprtc.so.7.1");
    const Variable log("FAKE_HIPRTC_LOG", at("log"));
    for (const char* arch : {"gfx942", "gfx950"}) {
        const auto built = Builder(settings_).build(request_for(arch));
        ASSERT_TRUE(built.ok()) << built.error().message;
        EXPECT_EQ(built->manifest.compiler, "hiprtc 7.1");
        const std::string object = read_file(built->path).value();
        EXPECT_TRUE(check_amdgpu_object(object, arch).ok());
        ASSERT_TRUE(built->manifest.resources.has_value());
        EXPECT_GT(built->manifest.resources->registers, 32);
    }
    EXPECT_EQ(lines(at("log")), 4) << "each arch is asked for once";
    ASSERT_TRUE(Builder(settings_).build(request_for("gfx90a")).ok());
    settings_.cache_dir = at("another");
    ASSERT_TRUE(Builder(settings_).build(request_for("gfx90a")).ok());
    EXPECT_EQ(lines(at("log")), 7);
    const std::string options = read_file(at("log")).value();
    expect_all(options, {"--hiprtc-no-builtin-header", "--offload-arch=gfx950", "-std=c++20", "-O3",
                         "-mcode-object-version=5", "-nogpuinc"});
    for (const char* own : {"--cuda-device-only", "'hip'", "-nostdinc"}) {
        EXPECT_EQ(options.find(own), std::string::npos) << own;
    }
}

TEST_F(HiprtcTest, AnOlderOneIncludesItsHeader) {
    if (!has_clang()) GTEST_SKIP() << "clang 22 is not installed";
    settings_.hiprtc = copy_as("libhiprtc.so.6.0.32830");
    const Variable old("FAKE_HIPRTC_OLD", "1"), log("FAKE_HIPRTC_LOG", at("log"));
    EXPECT_EQ(failure("gfx942"), "built");
    EXPECT_EQ(lines(at("log")), 2);
}

TEST_F(HiprtcTest, AnErrorComesWithOptionsLogAndSource) {
    if (!has_clang()) GTEST_SKIP() << "clang 22 is not installed";
    settings_.hiprtc = copy_as("libhiprtc.so.7.2");
    BuildRequest request = request_for("gfx942");
    request.source += "static_assert(sizeof(int) == 5, \"no such int\");\n";
    const auto built = Builder(settings_).build(request);
    ASSERT_FALSE(built.ok());
    const std::string folder = settings_.cache_dir + "/failed/" + *digest_of(request);
    expect_all(built.error().message,
               {"hiprtc 7.2", "HIPRTC_ERROR_COMPILATION", "no such int", "--offload-arch=gfx942", folder});
    EXPECT_EQ(*read_file(folder + "/entry/source.cpp"), request.source);
}

TEST_F(HiprtcTest, OneThatDoesNotKnowTheChipSaysSo) {
    settings_.hiprtc = copy_as("libhiprtc.so.6.1");
    const Variable archs("FAKE_HIPRTC_ARCHS", "gfx90a,gfx942");
    expect_all(failure("gfx950"), {"libhiprtc.so.6.1", "compiles nothing for gfx950", "invalid target ID"});
}

TEST_F(HiprtcTest, WhatIsNoCodeObjectIsRefused) {
    settings_.hiprtc = copy_as("libhiprtc.so.7.3");
    const Variable junk("FAKE_HIPRTC_JUNK", "1");
    expect_all(failure("gfx942"), {"no code object of an AMD GPU"});
}

TEST_F(HiprtcTest, MissingOrTooOldOrAnother) {
    settings_.hiprtc = "/nowhere/libhiprtc.so.7";
    expect_all(failure("gfx942"), {"TILEWISE_HIPRTC is '/nowhere/libhiprtc.so.7'", "TILEWISE_AMDCLANG"});
    settings_.hiprtc = copy_as("libhiprtc.so.5.7.31921");
    expect_all(failure("gfx942"), {"ROCm 5", "need ROCm 6 or newer"});
    settings_.hiprtc = "libm.so.6";
    expect_all(failure("gfx942"), {"libm.so.6 is no hiprtc"});
}

// The lock that it has itself may be taken at the fork.
TEST_F(HiprtcTest, AChildOfAProcessThatHasUsedItGetsAnError) {
    settings_.hiprtc = copy_as("libhiprtc.so.7.4");
    const Variable archs("FAKE_HIPRTC_ARCHS", "none");
    expect_all(failure("gfx942"), {"compiles nothing"});
    const pid_t child = fork();
    if (child == 0) _exit(failure("gfx942").find("before this process was forked") == std::string::npos ? 1 : 0);
    EXPECT_EQ(exit_code(child), 0);
}

}  // namespace
}  // namespace tilewise
