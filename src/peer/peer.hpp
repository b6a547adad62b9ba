// SPDX-License-Identifier: MIT
// A library to compare with, loaded from its shared object when it is asked for, so that building needs none of them.
// Each peer declares the few C functions it calls itself. For tilewise bench --peer, and for the programs of benchmarks/.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "measure/tensors.hpp"
#include "measure/timing.hpp"

namespace tilewise::bench {

class Peer {
public:
    virtual ~Peer() = default;

    virtual std::string name() const = 0;  // with the version, short enough for a column
    virtual std::string details() const = 0;
    // The product of the tensors as one call; everything that need happen only once, packing too, happens here. Fails
    // where the library has no such product. The tensors must outlive the call.
    virtual Result<TimedCall> bind(const Tensors& tensors) = 0;
};

Result<std::unique_ptr<Peer>> load_openblas(const std::string& path, int threads = 1);
Result<std::unique_ptr<Peer>> load_onednn(const std::string& path);  // as many threads as OpenMP takes

}  // namespace tilewise::bench
