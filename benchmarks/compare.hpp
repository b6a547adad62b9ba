// SPDX-License-Identifier: MIT
// One case on tilewise and on every peer, on the same tensors in alternating blocks. All results must agree before any is
// timed. Times are the fastest block's CPU time of the process: on a busy machine, other programs' turns do not count.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "benchmarks/cases.hpp"
#include "benchmarks/peer.hpp"
#include "select/dispatcher.hpp"

namespace tilewise::bench {

struct Comparison {
    Case of;
    std::string kernel;                           // the one that measuring the model's best few chose
    double us = 0;                                // of that kernel
    double rules_us = 0;                          // of the kernel the analytic model puts first
    std::vector<std::optional<double>> peers_us;  // unset where a peer has no such product
};

struct CompareOptions {
    double seconds = 0.12;  // of timing, for each of those that are compared
};
Result<Comparison> compare(const Case& of, Dispatcher& dispatcher, const std::vector<std::unique_ptr<Peer>>& peers,
                           const CompareOptions& options);

}  // namespace tilewise::bench
