// SPDX-License-Identifier: MIT
#include "base/process.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/trust.hpp"

namespace tilewise {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{10};  // how soon the end of a program is seen that leaves its output open

// Ours, with the given variables put in the place of those of the same name. Compilers take programs, plugins and options
// from many variables (COMPILER_PATH, GCC_EXEC_PREFIX, LD_PRELOAD), so that with raised rights none is passed on. A service
// may have no PATH; compilers look for their linker there.
std::vector<std::string> child_environment(const ProcessSpec& spec) {
    std::vector<std::string> variables;
    if (has_raised_rights() || !secure_getenv("PATH")) variables.push_back(fmt::format("PATH={}", kTrustedPath));
    for (char** variable = environ; !has_raised_rights() && variable && *variable; ++variable) {
        const std::string_view text = *variable;
        const auto replaced = [&](const auto& set) {
            return text.size() > set.first.size() && text.starts_with(set.first) && text[set.first.size()] == '=';
        };
        if (std::none_of(spec.environment.begin(), spec.environment.end(), replaced)) variables.emplace_back(text);
    }
    for (const auto& [name, value] : spec.environment) variables.push_back(fmt::format("{}={}", name, value));
    return variables;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> list;
    list.reserve(texts.size() + 1);
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
}

class SpawnSetup {
public:
    SpawnSetup() {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
    }
    ~SpawnSetup() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    SpawnSetup(const SpawnSetup&) = delete;
    SpawnSetup& operator=(const SpawnSetup&) = delete;

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
};

// Returns the error number, 0 for none.
int spawn(const ProcessSpec& spec, int output, pid_t& pid) {
    SpawnSetup setup;
    posix_spawn_file_actions_adddup2(&setup.actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&setup.actions, output, STDERR_FILENO);
    // Last, because `output` itself may be 0 in a program that has closed its standard input.
    posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!spec.directory.empty()) posix_spawn_file_actions_addchdir_np(&setup.actions, spec.directory.c_str());

    // A host program may block signals or ignore SIGPIPE; a compiler expects neither.
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&setup.attributes, &none);
    posix_spawnattr_setsigdefault(&setup.attributes, &all);
    posix_spawnattr_setpgroup(&setup.attributes, 0);
    posix_spawnattr_setflags(&setup.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

    const std::vector<std::string> environment = child_environment(spec);
    return posix_spawn(&pid, spec.argv[0].c_str(), &setup.actions, &setup.attributes, pointers(spec.argv).data(),
                       pointers(environment).data());
}

enum class Life { running, ended, lost };

// Leaves the ended program uncollected, so that its number cannot be given to another before its group is killed.
Life look_at(pid_t pid) {
    siginfo_t info{};
    int answer = 0;
    do {
        answer = waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    } while (answer != 0 && errno == EINTR);
    if (answer != 0) return Life::lost;
    return info.si_pid == pid ? Life::ended : Life::running;
}

// Takes what is there to read, waiting for it at most `wait`; false at the end of the output.
bool drain(int output, milliseconds wait, ProcessOutcome& outcome, std::size_t limit) {
    pollfd watched{output, POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(wait.count())) <= 0) return true;
    char buffer[1 << 14];
    const ssize_t count = read(output, buffer, sizeof buffer);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    const std::size_t room = limit - std::min(limit, outcome.output.size());
    outcome.output.append(buffer, std::min(room, static_cast<std::size_t>(count)));
    return count > 0;
}

void collect(pid_t pid, ProcessOutcome& outcome) {
    int status = 0;
    pid_t answer = 0;
    do {
        answer = waitpid(pid, &status, 0);
    } while (answer < 0 && errno == EINTR);
    outcome.unknown = answer != pid;
    if (outcome.unknown) return;
    if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
}

void wait_for(pid_t pid, int output, const ProcessSpec& spec, ProcessOutcome& outcome) {
    const auto deadline = Clock::now() + spec.time_limit;
    auto pause = std::chrono::microseconds(100);
    bool open = true;
    Life life = Life::running;
    while (life == Life::running) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
        if (left <= milliseconds(0) || (spec.stop && *spec.stop)) {
            outcome.timed_out = true;
            break;
        }
        if (open) {
            open = drain(output, std::min(left, kTick), outcome, spec.output_limit);
        } else {  // a program closes its output a moment before it ends
            std::this_thread::sleep_for(pause);
            pause = std::min<std::chrono::microseconds>(2 * pause, kTick);
        }
        life = look_at(pid);
    }
    // Ends what it may have left running, too. When the end was lost the number may already be someone else's.
    if (life != Life::lost) kill(-pid, SIGKILL);
    for (int i = 0; open && i < 1000; ++i) {  // what was still in the pipe; a flood is cut off
        pollfd watched{output, POLLIN, 0};
        if (poll(&watched, 1, 0) <= 0) break;
        open = drain(output, milliseconds(0), outcome, spec.output_limit);
    }
    collect(pid, outcome);
}

}  // namespace

Result<ProcessOutcome> run_process(const ProcessSpec& spec) {
    const auto failed = [&](int error) {
        return Error{ErrorCode::toolchain,
                     fmt::format("cannot start '{}': {}", spec.argv.empty() ? "" : spec.argv[0], std::strerror(error))};
    };
    if (spec.argv.empty()) return failed(EINVAL);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return failed(errno);
    pid_t pid = 0;
    const int error = spawn(spec, ends[1], pid);
    close(ends[1]);
    ProcessOutcome outcome;
    if (error == 0) wait_for(pid, ends[0], spec, outcome);
    close(ends[0]);
    if (error != 0) return failed(error);
    return outcome;
}

std::string print_command(const std::vector<std::string>& argv) {
    constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-_./=:,@%";
    std::string line;
    for (const std::string& word : argv) {
        if (!line.empty()) line += ' ';
        if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
            line += word;
            continue;
        }
        line += '\'';
        for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
        line += '\'';
    }
    return line;
}

}  // namespace tilewise
