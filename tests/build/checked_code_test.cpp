// SPDX-License-Identifier: MIT
#include "build/checked_code.hpp"

#include "build/build_testing.hpp"
#include "build/memory_file.hpp"

namespace tilewise {
namespace {

using namespace build_testing;

class CheckedCodeTest : public BuildTest {
protected:
    BuiltKernel built(int answer) {
        Builder builder(settings_);
        const auto kernel = builder.build(answering(answer));
        EXPECT_TRUE(kernel.ok()) << kernel.error().message;
        return *kernel;
    }
    static void expect_refused(const BuiltKernel& kernel, const std::string& why) {
        const auto code = CheckedCode::open(kernel);
        ASSERT_FALSE(code.ok());
        EXPECT_EQ(code.error().code, ErrorCode::toolchain) << "it may be built again";
        for (const std::string& part : {kernel.manifest.kernel, why}) {
            EXPECT_NE(code.error().message.find(part), std::string::npos) << code.error().message;
        }
    }
};

TEST_F(CheckedCodeTest, IsWhatWasBuilt) {
    const BuiltKernel kernel = built(1);
    const auto code = CheckedCode::open(kernel);
    ASSERT_TRUE(code.ok()) << code.error().message;
    EXPECT_EQ(code->bytes(), *read_file(kernel.path));
    EXPECT_EQ(ask(code->path()), 1);
}

TEST_F(CheckedCodeTest, OtherContentsAreRefused) {
    BuiltKernel kernel = built(2);
    const BuiltKernel other = built(3);
    ASSERT_TRUE(write_file(kernel.path, *read_file(other.path)).ok());
    expect_refused(kernel, "not those of its manifest");
    kernel.path = *memory_file(std::string(64, 'e'), *read_file(other.path));
    expect_refused(kernel, "not those of its manifest");
    kernel.path = *memory_file(std::string(64, 'f'), CheckedCode::open(other)->bytes());
    kernel.manifest = other.manifest;
    EXPECT_EQ(ask(CheckedCode::open(kernel)->path()), 3);
}

TEST_F(CheckedCodeTest, WhatOthersMayWriteOrExchangeIsRefused) {
    const BuiltKernel kernel = built(4);
    const std::string folder = entry(kernel.digest), shard = folder.substr(0, folder.rfind('/'));
    for (const std::string& path : {kernel.path, folder, shard}) {
        ASSERT_EQ(chmod(path.c_str(), 0777), 0);
        expect_refused(kernel, "chmod go-w");
        ASSERT_EQ(chmod(path.c_str(), 0700), 0);
    }
    for (const std::string& path : {kernel.path, folder, shard}) {
        fs::rename(path, at("elsewhere"));
        expect_refused(kernel, "No such file");
        fs::create_symlink(at("elsewhere"), path);
        expect_refused(kernel, path == shard ? "Not a directory" : "is a link");
        fs::remove(path);
        fs::rename(at("elsewhere"), path);
    }
    EXPECT_TRUE(CheckedCode::open(kernel).ok());
}

// Who may rename a folder far above, at the moment between the check and the loading, cannot have another file loaded.
TEST_F(CheckedCodeTest, WhatWasCheckedIsLoadedWhateverTakesItsName) {
    const BuiltKernel kernel = built(5), evil = built(6);
    const auto code = CheckedCode::open(kernel);
    ASSERT_TRUE(code.ok()) << code.error().message;
    const std::string contents = *read_file(evil.path);
    fs::rename(settings_.cache_dir, at("moved"));
    ASSERT_TRUE(make_directories(entry(kernel.digest)).ok());
    ASSERT_TRUE(write_file(kernel.path, contents).ok());
    EXPECT_EQ(ask(kernel.path), 6) << "the exchange would work";
    EXPECT_EQ(ask(code->path()), 5);
}

}  // namespace
}  // namespace tilewise
