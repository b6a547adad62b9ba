// SPDX-License-Identifier: MIT
#include "sweep/worker_process.hpp"

#include <gtest/gtest.h>

namespace tilewise {
namespace {

using Wait = WorkerProcess::Wait;

struct WorkerProcessTest : testing::Test {
    static std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
        return std::chrono::steady_clock::now() + time;
    }
    static WorkerProcess shell(const std::string& script) {
        auto started = WorkerProcess::start({"/bin/sh", "-c", script});
        EXPECT_TRUE(started.ok());
        return std::move(*started);
    }
    std::string line;
};

TEST_F(WorkerProcessTest, LinesGoBothWays) {
    WorkerProcess worker = shell("while read line; do echo \"<$line>\"; done");
    ASSERT_TRUE(worker.send("one"));
    ASSERT_TRUE(worker.send("two"));
    EXPECT_EQ(worker.receive(line, in(std::chrono::seconds(20))), Wait::line);
    EXPECT_EQ(line, "<one>");
    EXPECT_EQ(worker.receive(line, in(std::chrono::seconds(20))), Wait::line);
    EXPECT_EQ(line, "<two>");
    EXPECT_EQ(worker.end(), "exit code 0") << "closing its input ends it";
    EXPECT_EQ(worker.end(), "");
}

TEST_F(WorkerProcessTest, OneThatHangsIsLateAndIsKilled) {
    WorkerProcess worker = shell("sleep 1000");
    EXPECT_EQ(worker.receive(line, in(std::chrono::milliseconds(20))), Wait::late);
    EXPECT_NE(worker.end().find("signal 9"), std::string::npos);
}

TEST_F(WorkerProcessTest, OneThatEndsIsGoneAfterItsLastLine) {
    WorkerProcess worker = shell("echo last; kill -SEGV $$");
    EXPECT_EQ(worker.receive(line, in(std::chrono::seconds(20))), Wait::line);
    EXPECT_EQ(worker.receive(line, in(std::chrono::seconds(20))), Wait::gone);
    EXPECT_NE(worker.end().find("signal 11"), std::string::npos);
    EXPECT_FALSE(WorkerProcess::start({"/nonexistent/worker"}).ok());
}

TEST_F(WorkerProcessTest, WritingToOneThatIsGoneIsNoSignal) {
    WorkerProcess worker = shell("exit 3");
    EXPECT_EQ(worker.receive(line, in(std::chrono::seconds(20))), Wait::gone);
    bool sent = true;
    for (int i = 0; i < 3 && sent; ++i) sent = worker.send(std::string(1 << 16, 'x'));
    EXPECT_FALSE(sent);
    EXPECT_EQ(worker.end(), "exit code 3");
}

}  // namespace
}  // namespace tilewise
