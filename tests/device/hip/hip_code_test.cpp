// SPDX-License-Identifier: MIT
// Code objects that are none for the device: refused before the runtime sees them, by the names of both, and compiled anew.
#include <unistd.h>

#include <filesystem>

#include "base/files.hpp"
#include "base/sha256.hpp"
#include "build/build_testing.hpp"
#include "device/hip/hip_testing.hpp"
#include "run/kernel_code.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;
using build_testing::Variable;

class HipCode : public HipTest {
protected:
    void SetUp() override {
        HipTest::SetUp();
        ASSERT_NE(mkdtemp(root_.data()), nullptr);
    }
    void TearDown() override { fs::remove_all(root_); }

    static BuildRequest request_of(const char* arch, std::string_view suffix) {
        KernelConfig config = parse_kernel_name(kHipKernel).value();
        config.arch = arch;
        return build_request(config, **embedded_archs().find(arch), suffix,
                             chain_of(parse_problem(kHipProblem).value()))
            .value();
    }
    std::string other_object() {
        const auto built = builder.build(request_of("gfx90a", kHsaco));
        EXPECT_TRUE(built.ok()) << built.error().message;
        return read_file(built->path).value();
    }
    static std::string entry(const std::string& cache, const BuildRequest& request) {
        const std::string digest = digest_of(request).value();
        return cache + "/v1/" + digest.substr(0, 2) + "/" + digest;
    }

    // What a device says of such contents under the name of a kernel for gfx942.
    Error refusal(const std::string& contents) {
        BuiltKernel built = builder.build(request_of("gfx942", kHsaco)).value();
        const std::string folder = root_ + "/" + built.digest;
        fs::create_directories(folder);
        built.path = folder + "/kernel.hsaco";
        EXPECT_TRUE(write_file(built.path, contents).ok());
        built.manifest.sha256 = sha256_hex(contents);
        const auto code = open("hip:0")->load(built);
        EXPECT_FALSE(code.ok());
        return code ? Error{} : code.error();
    }

    std::string root_ = "/tmp/tilewise-hip-code-XXXXXX";
};

TEST_F(HipCode, WhatIsNoObjectForTheDeviceIsRefused) {
    const std::string right = read_file(builder.build(request_of("gfx942", kHsaco)).value().path).value();
    const auto says = [&](const std::string& contents, const std::string& why) {
        const Error error = refusal(contents);
        EXPECT_EQ(error.code, ErrorCode::toolchain);
        EXPECT_NE(error.message.find("is not loaded on hip:0, which is gfx942: " + why), std::string::npos)
            << error.message;
    };
    says(other_object(), "it is a code object for gfx90a, not for gfx942");
    says(right.substr(0, right.size() / 2), "it is no code object of an AMD GPU");
    says("no object at all", "it is no code object of an AMD GPU");
    says(read_file("/proc/self/exe").value(), "it is no code object of an AMD GPU");
    std::string renamed = right;
    for (std::size_t at = 0; (at = renamed.find("tilewise_kernel.kd", at)) != std::string::npos;) renamed[at] = 'T';
    says(renamed, "it has no symbol tilewise_kernel.kd");
}

TEST_F(HipCode, AnObjectOfAnotherChipIsCompiledAnew) {
    ASSERT_TRUE(prepare(*device).ok());  // so that its twin is compiled
    const std::string cache = root_ + "/cache";
    const BuildRequest request = request_of("gfx942", kHsaco);
    BuildSettings settings = builder.settings();
    for (const auto& kind : {request, request_of("gfx942", kEmulatedCode)}) {
        fs::create_directories(fs::path(entry(cache, kind)).parent_path());
        fs::copy(entry(settings.cache_dir, kind), entry(cache, kind), fs::copy_options::recursive);
    }
    for (const char* folder : {"", "/v1"}) fs::permissions(cache + folder, fs::perms::owner_all);
    const Variable place("TILEWISE_CACHE_DIR", cache);
    settings.cache_dir = cache;
    const std::string path = entry(cache, request) + "/manifest.json";
    const auto plant = [&] {  // whole, as the manifest says, but of another chip
        const std::string object = other_object();
        Manifest manifest = parse_manifest(Json::parse(read_file(path).value()).value(), path).value();
        manifest.sha256 = sha256_hex(object), manifest.size = static_cast<std::int64_t>(object.size());
        ASSERT_TRUE(write_file(entry(cache, request) + "/kernel.hsaco", object).ok());
        ASSERT_TRUE(write_file(path, manifest_json(manifest).dump()).ok());
    };
    const Problem problem = parse_problem(kHipProblem).value();
    const Kernel kernel = make_kernel(parse_kernel_name(kHipKernel).value());
    plant();
    Builder again(settings);
    const auto ready = Executable::prepare(problem, kernel, *open("hip:1"), again);
    ASSERT_TRUE(ready.ok()) << ready.error().message;
    EXPECT_EQ(ready->built().origin, KernelOrigin::built);

    plant();
    settings.amdclang = "/nowhere/clang++";
    Builder without(settings);
    const auto refused = Executable::prepare(problem, kernel, *open("hip:1"), without);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::toolchain);
    for (const char* part : {"gfx90a", "gfx942", "/nowhere/clang++", "clang 19 or newer"}) {
        EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
    }
}

}  // namespace
}  // namespace tilewise
