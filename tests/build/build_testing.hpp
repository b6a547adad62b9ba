// SPDX-License-Identifier: MIT
// The tests of build/ share these: a folder of their own, a tiny kernel, compilers that only pretend, and this test
// program run again as another process.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/files.hpp"
#include "build/builder.hpp"

namespace tilewise::build_testing {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

inline BuildRequest answering(int answer) {
    BuildRequest request;
    request.name = "answer_" + std::to_string(answer);
    request.arch = "cpu-generic";
    request.source = "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return " +
                     std::to_string(answer) + "; }\n";
    return request;
}

// Asks the kernel at `path`; -1 when it does not load.
inline int ask(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return -1;
    auto* answer = reinterpret_cast<int (*)()>(dlsym(library, "answer"));
    const int value = answer ? answer() : -1;
    dlclose(library);
    return value;
}

inline bool is_running(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return (file >> number >> name >> state) && state != "Z";
}

template <class Condition>
bool soon(Condition condition) {
    for (int i = 0; i < 1000; ++i) {
        if (condition()) return true;
        std::this_thread::sleep_for(10ms);
    }
    return condition();
}

class Variable {  // set while it lives
public:
    Variable(const char* name, const std::string& value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before, had_ = true;
        setenv(name, value.c_str(), 1);
    }
    ~Variable() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
    std::string before_;
    bool had_ = false;
};

class BuildTest : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_NE(mkdtemp(root_.data()), nullptr);
        settings_.cache_dir = root_ + "/cache";
        settings_.temp_dir = root_ + "/temp";
        settings_.compile_limit = 30s;
        fs::create_directory(settings_.temp_dir);
    }
    void TearDown() override {
        EXPECT_TRUE(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD) << "a child process is left";
        EXPECT_TRUE(fs::is_empty(settings_.temp_dir)) << "a temporary folder is left";
        for (const auto& path : fs::recursive_directory_iterator(root_)) {
            EXPECT_FALSE(path.path().filename().string().starts_with("build-")) << "a build folder is left";
        }
        fs::remove_all(root_);
    }

    std::string at(const std::string& name) const { return root_ + "/" + name; }
    std::string entry(const std::string& digest) const {
        return settings_.cache_dir + "/v1/" + digest.substr(0, 2) + "/" + digest;
    }
    KernelCache cache() const { return KernelCache(settings_.cache_dir); }

    // A shell script that says it is g++ 12.2.0 and otherwise does as told; returns its path.
    std::string fake_compiler(const std::string& body, const std::string& name = "fake-c++", int version = 12) const {
        const std::string path = at(name);
        std::ofstream(path)
            << "#!/bin/sh\ncase \"$*\" in *-dM*)\necho '#define __GNUC__ " << version
            << "'; echo '#define __GNUC_MINOR__ 2'; echo '#define __GNUC_PATCHLEVEL__ 0'; exit 0;; esac\n"
            << body << "\n";
        chmod(path.c_str(), 0755);
        return path;
    }
    // The real compiler, which also adds a line to `log` each time it compiles.
    std::string counting_compiler(const std::string& log) const {
        const auto real = find_host_compiler("");
        EXPECT_TRUE(real.ok());
        return fake_compiler("echo run >> " + log + "\nexec " + real->path + " \"$@\"", "counting-c++");
    }
    static int lines(const std::string& path) {
        std::ifstream file(path);
        int count = 0;
        for (std::string line; std::getline(file, line);) ++count;
        return count;
    }

    std::string root_ = "/tmp/tilewise-build-test-XXXXXX";
    BuildSettings settings_;
};

// This program again, running one (disabled) test; what the test must know is passed in the environment. Its exit code
// is 0 when that test passed.
inline pid_t start_again(const std::string& test, const std::vector<std::string>& environment) {
    const std::string filter = "--gtest_filter=" + test;
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);
    for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
    // The test that is named belongs to every shard.
    unsetenv("GTEST_TOTAL_SHARDS"), unsetenv("GTEST_SHARD_INDEX");
    execl("/proc/self/exe", "tilewise_tests", filter.c_str(), "--gtest_also_run_disabled_tests", nullptr);
    _exit(126);
}

inline int exit_code(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace tilewise::build_testing
