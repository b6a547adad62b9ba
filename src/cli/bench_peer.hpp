// SPDX-License-Identifier: MIT
// tilewise bench --peer: the same products by another library, where one can be loaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/command.hpp"
#include "device/device.hpp"
#include "measure/timing.hpp"
#include "peer/peer.hpp"

namespace tilewise::cli {

using Peers = std::vector<std::unique_ptr<bench::Peer>>;

// Those of --peer NAME and --peer NAME=FILE, with as many threads as the device takes. An error where one cannot be loaded.
Result<Peers> load_peers(const Context& context, const Device& device);

// On random operands that take turns beyond the cache, as our own kernels are timed. An error where the library has no such product.
Result<TimingResult> time_peer(bench::Peer& peer, const Problem& problem, const Device& device);

}  // namespace tilewise::cli
