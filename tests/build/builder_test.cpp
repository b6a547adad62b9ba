// SPDX-License-Identifier: MIT
#include "build/builder.hpp"

#include <algorithm>
#include <set>

#include "build/build_testing.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {
namespace {

using namespace build_testing;

class BuilderTest : public BuildTest {};

TEST_F(BuilderTest, BuildsOnceThenNeedsNoCompiler) {
    settings_.compiler = counting_compiler(at("log"));
    const BuildRequest request = answering(42);
    std::string path;
    {
        Builder builder(settings_);
        const auto kernel = builder.build(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_EQ(kernel->origin, KernelOrigin::built);
        EXPECT_EQ(kernel->note, "");
        EXPECT_EQ(kernel->digest, *digest_of(request));
        EXPECT_EQ(ask(kernel->path), 42);
        path = kernel->path;
        EXPECT_EQ(builder.build(request)->path, path);
    }
    EXPECT_EQ(lines(at("log")), 1);
    // Another process, with nothing to compile with.
    settings_.compiler = "/nonexistent/c++";
    const Variable variable("PATH", "");
    Builder builder(settings_);
    const auto kernel = builder.build(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->origin, KernelOrigin::cache);
    EXPECT_EQ(kernel->path, path);
    EXPECT_EQ(kernel->manifest.compiler, "g++ 12.2.0");
}

TEST_F(BuilderTest, AnEntryHasSourceManifestAndNothingElse) {
    BuildRequest request = answering(3);
    request.flags = {"-mavx2"};
    Builder builder(settings_);
    const auto kernel = builder.build(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    std::set<std::string> files;
    for (const auto& file : fs::directory_iterator(entry(kernel->digest))) files.insert(file.path().filename());
    EXPECT_EQ(files, (std::set<std::string>{"kernel.so", "manifest.json", "source.cpp", "used"}));
    EXPECT_EQ(*read_file(entry(kernel->digest) + "/source.cpp"), request.source);
    const Manifest& manifest = kernel->manifest;
    EXPECT_EQ(manifest.kernel, request.name);
    EXPECT_EQ(manifest.arch, request.arch);
    EXPECT_EQ(manifest.flags, request.flags);
    EXPECT_EQ(manifest.size, static_cast<std::int64_t>(fs::file_size(kernel->path)));
    EXPECT_EQ(manifest.created.size(), std::string("2025-01-31T12:00:00Z").size());
    struct stat info {};
    ASSERT_EQ(stat(settings_.cache_dir.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST_F(BuilderTest, KernelsOfAnotherVersionMayLieInTheSameCache) {
    Builder builder(settings_);
    const auto kernel = builder.build(answering(4));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const std::string path = entry(kernel->digest) + "/manifest.json";
    std::string text = *read_file(path);
    const std::string abi = "\"abi\": " + std::to_string(kKernelAbi);
    ASSERT_NE(text.find(abi), std::string::npos) << text;
    text.replace(text.find(abi), abi.size(), "\"abi\": 999");
    ASSERT_TRUE(write_file(path, text).ok());
    EXPECT_TRUE(cache().verify().empty());
    EXPECT_EQ(cache().ls().size(), 1u);
}

TEST_F(BuilderTest, TheSameBytesWhereverItIsBuilt) {
    std::string first;
    for (const char* name : {"one", "another-place"}) {
        settings_.cache_dir = at(name);
        BuildRequest request = answering(5);
        request.flags = {"-g"};
        request.source +=
            "extern \"C\" __attribute__((visibility(\"default\"))) const char* file() { return __FILE__; }";
        Builder builder(settings_);
        const auto kernel = builder.build(request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        const std::string contents = *read_file(kernel->path);
        EXPECT_EQ(contents.find(root_), std::string::npos) << "where it was built is in the kernel";
        if (first.empty()) first = contents;
        EXPECT_EQ(contents, first);
    }
}

TEST_F(BuilderTest, EmbeddedHeadersCanBeIncluded) {
    BuildRequest request = answering(0);
    request.source =
        "#include \"common/args.hpp\"\nextern \"C\" __attribute__((visibility(\"default\"))) int answer() { return "
        "100 + tilewise::kKernelAbi; }\n";
    const auto digest = digest_of(request);
    if (!digest) GTEST_SKIP() << digest.error().message;
    Builder builder(settings_);
    const auto kernel = builder.build(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_GT(ask(kernel->path), 100);
}

TEST_F(BuilderTest, NeedsNoLibraryAndHidesItsSymbols) {
    BuildRequest request = answering(6);
    request.source +=
        "int helper() { return 1; }\nextern \"C\" __attribute__((visibility(\"default\"))) void copy(float* "
        "a, const float* b, long n) { __builtin_memcpy(a, b, n); a[0] = __builtin_expf(b[0]); }";
    Builder builder(settings_);
    const auto kernel = builder.build(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(read_file(kernel->path)->find("libstdc++"), std::string::npos);
    void* library = dlopen(kernel->path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    EXPECT_EQ(dlsym(library, "_Z6helperv"), nullptr);
    dlclose(library);
    request.source += "void missing(); extern \"C\" __attribute__((visibility(\"default\"))) void f() { missing(); }";
    EXPECT_FALSE(builder.build(request).ok()) << "an undefined symbol is found when linking, not when loading";
}

TEST_F(BuilderTest, ARemovedKernelIsBuiltAgain) {
    Builder builder(settings_);
    ASSERT_TRUE(builder.build(answering(7)).ok());
    ASSERT_EQ(*cache().clear(), 1);
    const auto kernel = builder.build(answering(7));
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(kernel->origin, KernelOrigin::built);
    EXPECT_EQ(ask(kernel->path), 7);
}

TEST_F(BuilderTest, ACompileErrorComesWithCommandLogAndSource) {
    BuildRequest request = answering(8);
    request.source += "this is not C++;\n";
    Builder builder(settings_);
    for (int attempt = 0; attempt < 2; ++attempt) {
        const auto kernel = builder.build(request);
        ASSERT_FALSE(kernel.ok());
        EXPECT_EQ(kernel.error().code, ErrorCode::toolchain);
        const std::string kept = settings_.cache_dir + "/failed/" + *digest_of(request);
        for (const std::string& word :
             {std::string("answer_8"), std::string("-std=c++20"), std::string("error:"), kept}) {
            EXPECT_NE(kernel.error().message.find(word), std::string::npos) << word << "\n" << kernel.error().message;
        }
        EXPECT_EQ(*read_file(kept + "/entry/source.cpp"), request.source);
        EXPECT_NE(read_file(kept + "/log.txt")->find("error:"), std::string::npos);
        EXPECT_NE(read_file(kept + "/command.txt")->find("entry/source.cpp"), std::string::npos);
    }
    EXPECT_EQ(cache().stats().failed, 1);
    EXPECT_EQ(cache().stats().entries, 0);
    EXPECT_EQ(*cache().clear(), 1);
    EXPECT_EQ(cache().stats().failed, 0);
}

TEST_F(BuilderTest, ALongLogKeepsItsBeginningAndItsEnd) {
    settings_.compiler = fake_compiler(
        "echo FIRST; i=0; while [ $i -lt 2000 ]; do echo noise noise; i=$((i+1)); done; "
        "echo LAST; exit 1");
    Builder builder(settings_);
    const std::string message = builder.build(answering(1)).error().message;
    EXPECT_NE(message.find("FIRST"), std::string::npos);
    EXPECT_NE(message.find("LAST"), std::string::npos);
    EXPECT_LT(message.size(), 6000U);
}

TEST_F(BuilderTest, ATimeLimitEndsTheCompilerAndAllItStarted) {
    settings_.compiler = fake_compiler("sleep 1000 & echo $! > " + at("pid") + "; wait");
    settings_.compile_limit = 300ms;
    Builder builder(settings_);
    const auto kernel = builder.build(answering(9));
    ASSERT_FALSE(kernel.ok());
    EXPECT_NE(kernel.error().message.find("TILEWISE_COMPILE_TIMEOUT_S"), std::string::npos) << kernel.error().message;
    pid_t pid = 0;
    ASSERT_TRUE(std::ifstream(at("pid")) >> pid);
    EXPECT_TRUE(soon([&] { return !is_running(pid); }));
}

TEST_F(BuilderTest, ACompilerThatLiesIsNotBelieved) {
    for (const char* body : {"exit 0", "echo garbage > entry/kernel.so", "head -c 2000 /bin/sh > entry/kernel.so"}) {
        settings_.compiler = fake_compiler(body);
        Builder builder(settings_);
        const auto kernel = builder.build(answering(10));
        ASSERT_FALSE(kernel.ok()) << body;
        EXPECT_NE(kernel.error().message.find("no shared object"), std::string::npos) << kernel.error().message;
    }
    EXPECT_EQ(cache().stats().entries, 0);
}

TEST_F(BuilderTest, WithoutACompilerTheErrorSaysWhatToDo) {
    settings_.compiler = "/nonexistent/c++";
    settings_.packs = {"/nonexistent/pack"};
    Builder builder(settings_);
    ASSERT_EQ(builder.pack_errors().size(), 1U);
    const auto kernel = builder.build(answering(11));
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, ErrorCode::toolchain);
    for (const char* word : {"answer_11", "/nonexistent/c++", "apt install g++", "TILEWISE_CXX", "pack", "built-in",
                             "/nonexistent/pack"}) {
        EXPECT_NE(kernel.error().message.find(word), std::string::npos) << word << "\n" << kernel.error().message;
    }
    BuildRequest gpu = answering(1);
    gpu.suffix = ".hsaco";
    EXPECT_EQ(builder.build(gpu).error().code, ErrorCode::toolchain);
}

// A host program that ignores SIGCHLD never learns how a compiler ended.
TEST_F(BuilderTest, WorksInAHostThatIgnoresItsChildren) {
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    ASSERT_TRUE(find_host_compiler("").ok());
    sigaction(SIGCHLD, &ignore, &before);
    Builder builder(settings_);
    const auto good = builder.build(answering(12));
    BuildRequest wrong = answering(13);
    wrong.source += "error;";
    const auto bad = builder.build(wrong);
    sigaction(SIGCHLD, &before, nullptr);
    ASSERT_TRUE(good.ok()) << good.error().message;
    EXPECT_EQ(ask(good->path), 12);
    EXPECT_FALSE(bad.ok());
}

class BuilderThreads : public BuildTest {};

TEST_F(BuilderThreads, TheSameRequestIsCompiledOnce) {
    settings_.compiler = counting_compiler(at("log"));
    Builder builder(settings_);
    std::vector<std::string> paths(8);
    std::vector<std::thread> threads;
    for (std::string& path : paths) {
        threads.emplace_back([&] {
            const auto kernel = builder.build(answering(20));
            ASSERT_TRUE(kernel.ok()) << kernel.error().message;
            path = kernel->path;
        });
    }
    for (std::thread& thread : threads) thread.join();
    // Loaded here and not by the threads: the thread sanitizer does not know the locks of the dynamic loader.
    for (const std::string& path : paths) EXPECT_EQ(ask(path), 20);
    EXPECT_EQ(lines(at("log")), 1);
}

TEST_F(BuilderThreads, AllAreBuiltInOrderAndOneFailureStopsNothing) {
    std::vector<BuildRequest> requests;
    for (int i = 0; i < 12; ++i) requests.push_back(answering(i));
    requests[5].source += "error;";
    requests[7] = requests[2];
    Builder builder(settings_);
    std::vector<std::size_t> done;
    std::size_t failed = 0;
    const auto caller = std::this_thread::get_id();
    const auto results = builder.build_all(requests, 3, [&](const BuildProgress& progress) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_EQ(progress.total, 12U);
        done.push_back(progress.done);
        failed = progress.failed;
        EXPECT_TRUE(builder.build(requests[0]).ok()) << "no lock is held";
    });
    ASSERT_EQ(results.size(), requests.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        ASSERT_EQ(results[i].ok(), i != 5) << i;
        if (i == 5) continue;
        EXPECT_EQ(ask(results[i]->path), i == 7 ? 2 : static_cast<int>(i));
    }
    EXPECT_EQ(done, (std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    EXPECT_EQ(failed, 1U);
    EXPECT_TRUE(builder.build_all({}, 4).empty());
}

TEST_F(BuilderThreads, AThrowingCallbackLeavesNothingRunning) {
    std::vector<BuildRequest> requests;
    for (int i = 0; i < 20; ++i) requests.push_back(answering(i));
    Builder builder(settings_);
    EXPECT_THROW(builder.build_all(requests, 2, [](const BuildProgress&) { throw 1; }), int);
    EXPECT_LT(cache().stats().entries, 20);
}

}  // namespace
}  // namespace tilewise
