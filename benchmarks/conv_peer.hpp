// SPDX-License-Identifier: MIT
// oneDNN as a peer of convolutions. Activations lie channels-last for it, too. Weights are as the user has them (GKYXC), or
// packed ahead, in the form that the library prefers: the same two forms that tilewise is timed in.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/tensors.hpp"
#include "measure/timing.hpp"
#include "peer/onednn_engine.hpp"

namespace tilewise::bench {

// One way of the library's to compute the convolution of the tensors, which must outlive it.
struct BoundConv {
    std::string implementation;    // the library's name for its code; "+ reorder" where the call has one
    TimedCall call;                // everything that need happen only once has happened
    std::function<void()> finish;  // brings the result into the tensors, where the call leaves it elsewhere
};

// All ways that are worth timing; the fastest counts. With plain weights these are its code for that form, often a slow one,
// and its best code with a reorder in every call. Packed: its best code alone. Empty where it has none.
std::vector<BoundConv> bind_conv(const OnednnEngine& engine, const Tensors& tensors, bool packed);

}  // namespace tilewise::bench
