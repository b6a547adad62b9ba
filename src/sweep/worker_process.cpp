// SPDX-License-Identifier: MIT
#include "sweep/worker_process.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace tilewise {
namespace {

Error cannot_start(const std::string& program, int error) {
    return {ErrorCode::check_failed, fmt::format("cannot start a worker, '{}': {}", program, std::strerror(error))};
}

// Returns the error number, 0 for none.
int spawn_worker(const std::vector<std::string>& argv, int end, pid_t& pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, end, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, end, STDOUT_FILENO);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    std::vector<char*> words;
    words.reserve(argv.size() + 1);
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const int error = posix_spawn(&pid, argv[0].c_str(), &actions, &attributes, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const std::vector<std::string>& argv) {
    // A pair of sockets is a pipe each way, on which writing to a worker that is gone is no signal.
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return cannot_start(argv[0], errno);
    pid_t pid = 0;
    const int error = spawn_worker(argv, ends[1], pid);
    close(ends[1]);
    if (error == 0) return WorkerProcess(pid, ends[0]);
    close(ends[0]);
    return cannot_start(argv[0], error);
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), fd_(std::exchange(other.fd_, -1)), unread_(std::move(other.unread_)) {}

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
    if (this == &other) return *this;
    end();
    pid_ = std::exchange(other.pid_, 0);
    fd_ = std::exchange(other.fd_, -1);
    unread_ = std::move(other.unread_);
    return *this;
}

bool WorkerProcess::send(const std::string& line) {
    const std::string text = line + '\n';
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t count = ::send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        done += static_cast<std::size_t>(count);
    }
    return true;
}

WorkerProcess::Wait WorkerProcess::receive(std::string& line, std::chrono::steady_clock::time_point deadline) {
    using std::chrono::milliseconds;
    while (true) {
        if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
            line = unread_.substr(0, end);
            unread_.erase(0, end + 1);
            return Wait::line;
        }
        const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
        if (left <= milliseconds(0)) return Wait::late;
        constexpr milliseconds kMost{60'000};
        pollfd watched{fd_, POLLIN, 0};
        if (poll(&watched, 1, static_cast<int>(std::min(left, kMost).count())) <= 0) continue;
        char buffer[1 << 14];
        const ssize_t count = read(fd_, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return Wait::gone;
        unread_.append(buffer, static_cast<std::size_t>(count));
    }
}

std::string WorkerProcess::end() {
    if (pid_ <= 0) return "";
    // Closing ends one that waits; one that ends by itself has a moment to do so. It is left uncollected until its group is killed,
    // so that its number cannot be another's.
    close(std::exchange(fd_, -1));
    constexpr int kTries = 100;
    siginfo_t info{};
    for (int i = 0; i < kTries && info.si_pid == 0; ++i) {
        if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
        if (info.si_pid == 0) usleep(1000);
    }
    kill(-pid_, SIGKILL);
    int status = 0;
    pid_t answer = 0;
    do {
        answer = waitpid(pid_, &status, 0);
    } while (answer < 0 && errno == EINTR);
    pid_ = 0;
    if (answer < 0) return "an unknown end";
    if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace tilewise
