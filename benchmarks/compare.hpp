// SPDX-License-Identifier: MIT
// One case on tilewise and on every peer, on the same tensors. All results must agree before any is timed.
#pragma once

#include <memory>
#include <vector>

#include "benchmarks/contest.hpp"
#include "peer/onednn_engine.hpp"
#include "peer/peer.hpp"

namespace tilewise::bench {

Result<Comparison> compare(const Case& of, Dispatcher& dispatcher, const std::vector<std::unique_ptr<Peer>>& peers,
                           const CompareOptions& options);

Result<Comparison> compare_conv(const Case& of, Dispatcher& dispatcher, const std::vector<OnednnEngine>& peers,
                                const CompareOptions& options);

}  // namespace tilewise::bench
