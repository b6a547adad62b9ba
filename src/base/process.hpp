// SPDX-License-Identifier: MIT
// Runs a program and waits for it: no shell, no signal handlers, nothing inherited but the environment, and with raised
// rights (trust.hpp) not even that: the program then gets what is given here and a PATH that only root can change. The program
// gets a process group of its own, so that a time limit also ends what it has started itself.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace tilewise {

struct ProcessSpec {
    std::vector<std::string> argv;                                 // argv[0] is a path; PATH is not searched
    std::string directory;                                         // where it runs; empty: where we are
    std::vector<std::pair<std::string, std::string>> environment;  // set in addition
    std::chrono::milliseconds time_limit = std::chrono::seconds(60);
    const std::atomic<bool>* stop = nullptr;          // once it is true the program is killed, as at its time limit
    std::size_t output_limit = std::size_t{1} << 20;  // of the output, the first so many bytes are kept
};

struct ProcessOutcome {
    int exit_code = 0;       // meaningful when it ended by itself
    int signal = 0;          // the signal that ended it, 0 for none
    bool timed_out = false;  // it was killed at the time limit
    bool unknown = false;    // the host program ignores or collects all child processes, so how it ended is lost
    std::string output;      // standard output and standard error, as they came

    bool succeeded() const { return !timed_out && !unknown && signal == 0 && exit_code == 0; }
};

// An error only when the program could not be started.
Result<ProcessOutcome> run_process(const ProcessSpec& spec);

// The argument list as one would type it, for messages.
std::string print_command(const std::vector<std::string>& argv);

}  // namespace tilewise
