// SPDX-License-Identifier: MIT
// A worker process and the lines that pass between it and its parent. It is started with posix_spawn, in a process group of its
// own; ending it ends what it has started as well. It does not outlive its parent.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace tilewise {

class WorkerProcess {
public:
    // argv[0] is a path. The worker reads lines from its standard input and writes lines to its standard output.
    static Result<WorkerProcess> start(const std::vector<std::string>& argv);

    WorkerProcess(WorkerProcess&& other) noexcept;
    WorkerProcess& operator=(WorkerProcess&& other) noexcept;
    WorkerProcess(const WorkerProcess&) = delete;
    ~WorkerProcess() { end(); }

    // False when the worker is gone.
    bool send(const std::string& line);

    enum class Wait { line, gone, late };
    // The next line, or that there will be none, or that none came by then.
    Wait receive(std::string& line, std::chrono::steady_clock::time_point deadline);

    // Kills it, unless it has ended, and says how it ended: "signal 11 (Segmentation fault)", "exit code 3".
    std::string end();

private:
    WorkerProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}

    pid_t pid_ = 0;
    int fd_ = -1;
    std::string unread_;
};

}  // namespace tilewise
