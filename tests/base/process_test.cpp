// SPDX-License-Identifier: MIT
#include "base/process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

namespace tilewise {
namespace {

using namespace std::chrono_literals;

ProcessSpec shell(const std::string& script) {
    ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c", script};
    spec.time_limit = 20s;
    return spec;
}

ProcessOutcome run(const ProcessSpec& spec) {
    const auto outcome = run_process(spec);
    EXPECT_TRUE(outcome.ok()) << outcome.error().message;
    return outcome.ok() ? *outcome : ProcessOutcome();
}

bool is_running(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return (file >> number >> name >> state) && state != "Z";
}

bool ends_soon(pid_t pid) {
    for (int i = 0; i < 200 && is_running(pid); ++i) std::this_thread::sleep_for(10ms);
    return !is_running(pid);
}

bool no_children_left() { return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

TEST(Process, CapturesBothOutputsAndTheExitCode) {
    const ProcessOutcome outcome = run(shell("echo out; echo err >&2; exit 3"));
    EXPECT_EQ(outcome.output, "out\nerr\n");
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_FALSE(outcome.succeeded());
    EXPECT_TRUE(run(shell("true")).succeeded());
    EXPECT_EQ(run(shell("kill -TERM $$")).signal, SIGTERM);
    EXPECT_TRUE(no_children_left());
}

TEST(Process, AProgramHasAPathWhereWeHaveNone) {
    const std::string path = getenv("PATH");
    unsetenv("PATH");
    ProcessSpec spec;
    spec.argv = {"/usr/bin/env"};
    const std::string output = run(spec).output;
    setenv("PATH", path.c_str(), 1);
    EXPECT_NE(("\n" + output).find("\nPATH=/usr/bin:/bin\n"), std::string::npos) << output;
}

TEST(Process, DirectoryEnvironmentAndEmptyInput) {
    ProcessSpec spec = shell("pwd; echo $TILEWISE_TEST_X; echo ${HOME:+home}; cat");
    spec.directory = "/";
    spec.environment = {{"TILEWISE_TEST_X", "a b"}, {"HOME", "/h"}};
    EXPECT_EQ(run(spec).output, "/\na b\nhome\n");
}

TEST(Process, ArgumentsAreNotInterpreted) {
    ProcessSpec spec;
    spec.argv = {"/bin/echo", "$HOME", "*", "a;b", "'"};
    EXPECT_EQ(run(spec).output, "$HOME * a;b '\n");
    EXPECT_EQ(print_command(spec.argv), R"(/bin/echo '$HOME' '*' 'a;b' ''\''')");
}

TEST(Process, AMissingProgramOrFolderIsAnError) {
    ProcessSpec spec;
    spec.argv = {"/nonexistent/compiler"};
    const auto outcome = run_process(spec);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::toolchain);
    EXPECT_NE(outcome.error().message.find("/nonexistent/compiler"), std::string::npos);
    ProcessSpec nowhere = shell("true");
    nowhere.directory = "/nonexistent";
    EXPECT_FALSE(run_process(nowhere).ok());
    EXPECT_FALSE(run_process(ProcessSpec()).ok());
    EXPECT_TRUE(no_children_left());
}

TEST(Process, OutputIsLimitedButReadToItsEnd) {
    ProcessSpec spec = shell(
        "i=0; while [ $i -lt 5000 ]; do echo 0123456789012345678901234567890123456789; "
        "i=$((i+1)); done; exit 7");
    spec.output_limit = 1000;
    const ProcessOutcome outcome = run(spec);
    EXPECT_EQ(outcome.output.size(), 1000U);
    EXPECT_EQ(outcome.exit_code, 7);
}

TEST(Process, ItIsKilledWhenWeAreToldToStop) {
    std::atomic<bool> stop = false;
    ProcessSpec spec = shell("sleep 600");
    spec.time_limit = 600s;
    spec.stop = &stop;
    const std::jthread teller([&] {
        std::this_thread::sleep_for(50ms);
        stop = true;
    });
    EXPECT_FALSE(run(spec).succeeded());
    EXPECT_FALSE(run(spec).succeeded()) << "nor is another begun for long";
}

TEST(Process, TheTimeLimitEndsTheWholeGroup) {
    ProcessSpec spec = shell("sleep 1000 & echo $!; wait");
    spec.time_limit = 200ms;
    const auto start = std::chrono::steady_clock::now();
    const ProcessOutcome outcome = run(spec);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
    EXPECT_TRUE(outcome.timed_out);
    EXPECT_FALSE(outcome.succeeded());
    std::istringstream text(outcome.output);
    pid_t grandchild = 0;
    ASSERT_TRUE(text >> grandchild) << outcome.output;
    EXPECT_TRUE(ends_soon(grandchild));
    EXPECT_TRUE(no_children_left());
}

// A program that ends but leaves something behind that holds its output open must not be waited for.
TEST(Process, WhatIsLeftRunningIsEnded) {
    const auto start = std::chrono::steady_clock::now();
    const ProcessOutcome outcome = run(shell("sleep 1000 & echo $!"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
    EXPECT_TRUE(outcome.succeeded());
    EXPECT_TRUE(ends_soon(static_cast<pid_t>(std::stol(outcome.output))));
}

TEST(Process, AHostThatIgnoresItsChildrenIsToldSo) {
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGCHLD, &ignore, &before);
    const auto outcome = run_process(shell("echo hello"));
    sigaction(SIGCHLD, &before, nullptr);
    ASSERT_TRUE(outcome.ok());
    EXPECT_TRUE(outcome->unknown);
    EXPECT_FALSE(outcome->succeeded());
    EXPECT_EQ(outcome->output, "hello\n");
}

TEST(Process, SignalStateOfTheHostIsNotInherited) {
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    struct sigaction ignore {
    }, old{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &old);
    // The low 31 signals: the C library does as it likes with those it keeps for itself.
    const ProcessOutcome outcome =
        run(shell("grep -E 'Sig(Blk|Ign)' /proc/self/status | sed 's/:.*\\(.......\\)$/ \\1/'"));
    sigaction(SIGPIPE, &old, nullptr);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(outcome.output, "SigBlk 0000000\nSigIgn 0000000\n");
}

TEST(ProcessThreads, ManyAtOnce) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([i] {
            const std::string want = std::to_string(i);
            for (int n = 0; n < 5; ++n) EXPECT_EQ(run(shell("echo " + want)).output, want + "\n");
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(no_children_left());
}

}  // namespace
}  // namespace tilewise
