// SPDX-License-Identifier: MIT
#include "build/toolchain.hpp"

#include <algorithm>
#include <set>

#include "build/build_settings.hpp"
#include "build/build_testing.hpp"

namespace tilewise {
namespace {

using namespace build_testing;

class ToolchainTest : public BuildTest {};

TEST_F(ToolchainTest, FindsACompilerOnThisMachine) {
    const auto found = find_host_compiler("");
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_TRUE(found->kind == "g++" || found->kind == "clang++") << found->kind;
    EXPECT_EQ(std::count(found->version.begin(), found->version.end(), '.'), 2) << found->version;
    EXPECT_EQ(access(found->path.c_str(), X_OK), 0);
    EXPECT_EQ(*find_host_compiler(""), *found);
}

TEST_F(ToolchainTest, ANameIsLookedForOnPathAndAPathIsTaken) {
    const std::string path = fake_compiler("exit 1", "my-c++");
    EXPECT_EQ(find_host_compiler(path)->version, "12.2.0");
    const Variable variable("PATH", root_);
    EXPECT_EQ(find_host_compiler("my-c++")->path, path);
    EXPECT_EQ(find_host_compiler("my-c++")->kind, "g++");
}

// Where we are may be anyone's folder, and kernels are compiled elsewhere.
TEST_F(ToolchainTest, OnlyAbsoluteFoldersOfPathAreLookedAt) {
    const std::string path = fake_compiler("exit 1", "my-c++");
    const std::string before = fs::current_path();
    fs::current_path(root_);
    {
        const Variable variable("PATH", ".::../" + root_.substr(root_.rfind('/') + 1));
        EXPECT_FALSE(find_host_compiler("my-c++").ok());
        EXPECT_FALSE(find_host_compiler("").ok());
    }
    const auto named = find_host_compiler("./my-c++");
    fs::current_path(before);
    ASSERT_TRUE(named.ok()) << named.error().message;
    EXPECT_TRUE(named->path.starts_with(root_)) << named->path;
}

TEST_F(ToolchainTest, AnOldCompilerIsNamedWithItsVersionAndWhatIsNeeded) {
    const std::string path = fake_compiler("exit 1", "g++", 9);
    const auto named = find_host_compiler(path);
    ASSERT_FALSE(named.ok());
    EXPECT_EQ(named.error().code, ErrorCode::toolchain);
    for (const char* word : {path.c_str(), "g++ 9.2.0", "g++ 11 or newer", "clang++ 13"}) {
        EXPECT_NE(named.error().message.find(word), std::string::npos) << word << " in " << named.error().message;
    }
    const Variable variable("PATH", root_ + "::/nonexistent");
    const auto any = find_host_compiler("");
    ASSERT_FALSE(any.ok());
    EXPECT_NE(any.error().message.find("found " + path + " (g++ 9.2.0)"), std::string::npos) << any.error().message;
    // A newer one further down the list of names is taken instead.
    const std::string newer = fake_compiler("exit 1", "g++-13", 13);
    EXPECT_EQ(find_host_compiler("")->path, newer);
}

TEST_F(ToolchainTest, NoCompilerAndNoCompilerAtAll) {
    EXPECT_NE(find_host_compiler("/nonexistent/c++").error().message.find("TILEWISE_CXX"), std::string::npos);
    EXPECT_NE(find_host_compiler("/bin/true").error().message.find("neither g++ nor clang++"), std::string::npos);
    const Variable variable("PATH", "");
    EXPECT_NE(find_host_compiler("").error().message.find("no C++ compiler on PATH"), std::string::npos);
}

TEST_F(ToolchainTest, FlagsOfEveryFeatureAreKnownToTheCompiler) {
    const std::vector<std::string> features = {"sse2",     "avx2",     "fma",      "f16c",        "avx512f",
                                               "avx512bw", "avx512cd", "avx512dq", "avx512vl",    "avx512_vnni",
                                               "amx_tile", "amx_bf16", "amx_int8", "avx512_bf16", "avx_vnni"};
    EXPECT_EQ(host_flags(features),
              (std::vector<std::string>{"-msse2", "-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512cd",
                                        "-mavx512dq", "-mavx512vl", "-mavx512vnni", "-mamx-tile", "-mamx-bf16",
                                        "-mamx-int8", "-mavx512bf16", "-mavxvnni"}));
    BuildRequest request = answering(1);
    request.flags = host_flags(features);
    Builder builder(settings_);
    const auto kernel = builder.build(request);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
}

TEST(BuildSettings, ReadTheEnvironment) {
    const Variable cache("TILEWISE_CACHE_DIR", "");
    const Variable xdg("XDG_CACHE_HOME", "/x");
    const Variable home("HOME", "/h");
    const Variable max("TILEWISE_CACHE_MAX", "64M");
    const Variable limit("TILEWISE_COMPILE_TIMEOUT_S", "7");
    const Variable packs("TILEWISE_PACKS", "/a:/b");
    const Variable compiler("TILEWISE_CXX", "g++-12");
    const auto settings = build_settings();
    ASSERT_TRUE(settings.ok());
    EXPECT_EQ(settings->cache_dir, "/x/tilewise");
    EXPECT_EQ(settings->cache_max_bytes, 64 << 20);
    EXPECT_EQ(settings->compile_limit, 7s);
    EXPECT_EQ(settings->packs, (std::vector<std::string>{"/a", "/b"}));
    EXPECT_EQ(settings->compiler, "g++-12");
    {
        const Variable relative("XDG_CACHE_HOME", "x");
        EXPECT_EQ(build_settings()->cache_dir, "/h/.cache/tilewise");
        const Variable no_home("HOME", "");
        EXPECT_EQ(build_settings()->cache_dir, "");
        const Variable named("TILEWISE_CACHE_DIR", "/c/../d");
        EXPECT_EQ(build_settings()->cache_dir, "/d");
    }
    for (const char* name : {"TILEWISE_CACHE_MAX", "TILEWISE_COMPILE_TIMEOUT_S"}) {
        const Variable wrong(name, "much");
        ASSERT_FALSE(build_settings().ok());
        EXPECT_NE(build_settings().error().message.find(name), std::string::npos);
    }
}

}  // namespace
}  // namespace tilewise
