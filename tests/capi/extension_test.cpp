// SPDX-License-Identifier: MIT
// Extensions: a client's own C++, compiled once, found again without a compiler, and refused where it cannot be trusted.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tilewise/tilewise.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "last_error.hpp"

namespace {

namespace fs = std::filesystem;

// With the C++ library, and a flag that decides what it gives.
std::string request(const std::string& source, const std::string& flags = "") {
    return R"({"name": "an extension", "source": ")" + source + R"(", "flags": [)" + flags + "]}";
}

const std::string kSource =
    R"(#include <string>\nextern \"C\" __attribute__((visibility(\"default\"))) int answer() { return )"
    R"((int)std::string(ANSWER, 'x').size(); }\n)";

// A cache of its own for each test; the compiler is the one that kernels are compiled with.
class Extensions : public testing::Test {
protected:
    void SetUp() override {
        std::string folder = fs::temp_directory_path() / "tilewise-extension-XXXXXX";
        ASSERT_NE(mkdtemp(folder.data()), nullptr);
        cache_ = folder;
        remember("TILEWISE_CACHE_DIR", before_cache_), remember("TILEWISE_CXX", before_compiler_);
        setenv("TILEWISE_CACHE_DIR", cache_.c_str(), 1);
    }
    void TearDown() override {
        restore("TILEWISE_CACHE_DIR", before_cache_), restore("TILEWISE_CXX", before_compiler_);
        fs::remove_all(cache_);
    }

    static void remember(const char* name, std::pair<bool, std::string>& before) {
        const char* value = std::getenv(name);
        before = {value != nullptr, value ? value : ""};
    }
    static void restore(const char* name, const std::pair<bool, std::string>& before) {
        before.first ? setenv(name, before.second.c_str(), 1) : unsetenv(name);
    }
    static void take_compiler_away() { setenv("TILEWISE_CXX", "/nonexistent", 1); }

    fs::path built() const {
        for (const auto& entry : fs::recursive_directory_iterator(cache_ / "v1")) {
            if (entry.path().filename() == "kernel.ext") return entry.path();
        }
        return {};
    }

    fs::path cache_;
    std::pair<bool, std::string> before_cache_, before_compiler_;
};

tilewise_status load(const std::string& request, void** library) {
    return tilewise_load_extension(request.c_str(), library);
}

TEST_F(Extensions, AreCompiledOnceAndFoundWithoutACompiler) {
    const std::string forty_two = request(kSource, R"("-DANSWER=42")");
    void* library = nullptr;
    EXPECT_EQ(load(forty_two, &library), TILEWISE_CHECK_FAILED);
    EXPECT_NE(last_error().find("an extension is not compiled yet"), std::string::npos) << last_error();
    ASSERT_EQ(tilewise_build_extension(forty_two.c_str()), TILEWISE_OK) << last_error();
    take_compiler_away();
    EXPECT_EQ(tilewise_build_extension(forty_two.c_str()), TILEWISE_OK) << last_error();
    ASSERT_EQ(load(forty_two, &library), TILEWISE_OK) << last_error();
    const auto answer = reinterpret_cast<int (*)()>(dlsym(library, "answer"));
    ASSERT_NE(answer, nullptr);
    EXPECT_EQ(answer(), 42);
    EXPECT_EQ(load(request(kSource, R"("-DANSWER=43")"), &library), TILEWISE_TOOLCHAIN) << "other flags, other code";
    EXPECT_NE(last_error().find("/nonexistent"), std::string::npos) << last_error();
    EXPECT_EQ(library, nullptr);
}

TEST_F(Extensions, OneThatWasDamagedIsNotLoaded) {
    const std::string seven = request(kSource, R"("-DANSWER=7")");
    ASSERT_EQ(tilewise_build_extension(seven.c_str()), TILEWISE_OK) << last_error();
    {
        std::fstream file(built(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-1, std::ios::end).put('?');
    }
    void* library = nullptr;
    EXPECT_EQ(load(seven, &library), TILEWISE_CHECK_FAILED) << last_error();
    EXPECT_TRUE(built().empty()) << "it is out of the way";
}

TEST_F(Extensions, AFailureIsKeptAndNotRepeatedUnasked) {
    const std::string broken = request("this is no C++");
    EXPECT_EQ(tilewise_build_extension(broken.c_str()), TILEWISE_TOOLCHAIN);
    EXPECT_NE(last_error().find("an extension cannot be compiled"), std::string::npos) << last_error();
    void* library = nullptr;
    EXPECT_EQ(load(broken, &library), TILEWISE_TOOLCHAIN);
    const std::string said = last_error();
    EXPECT_NE(said.find("could not be compiled before"), std::string::npos) << said;
    EXPECT_NE(said.find(cache_ / "failed"), std::string::npos) << said;
}

TEST_F(Extensions, ACacheThatOthersMayWriteIsRefused) {
    ASSERT_EQ(chmod(cache_.c_str(), 0777), 0);
    const std::string wanted = request(kSource, R"("-DANSWER=1")");
    void* library = nullptr;
    EXPECT_EQ(load(wanted, &library), TILEWISE_USAGE) << last_error();
    EXPECT_NE(last_error().find("chmod"), std::string::npos) << last_error();
    EXPECT_EQ(tilewise_build_extension(wanted.c_str()), TILEWISE_USAGE) << last_error();
}

TEST_F(Extensions, MalformedRequestsAreRefused) {
    void* library = nullptr;
    for (const std::string& wrong : {std::string("{"), std::string("{}"), std::string(R"({"name": "x", "source": 1})"),
                                     std::string(R"({"name": "x", "source": "", "more": 1})")}) {
        EXPECT_EQ(tilewise_build_extension(wrong.c_str()), TILEWISE_USAGE) << wrong;
        EXPECT_EQ(load(wrong, &library), TILEWISE_USAGE) << wrong;
    }
    EXPECT_EQ(tilewise_build_extension(nullptr), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_load_extension("{}", nullptr), TILEWISE_USAGE);
}

}  // namespace
