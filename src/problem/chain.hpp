// SPDX-License-Identifier: MIT
// A chain is all that a problem does to its sums before they are stored, as far as code depends on it: a GPU kernel is compiled for one
// chain, or for any (kernels/gpu/chain.hpp). Values of alpha and beta are arguments; only whether C is read matters here.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct Chain {
    bool beta = false;
    Scale scale = Scale::none;
    std::vector<EpilogueOp> ops;

    bool is_plain() const { return !beta && scale == Scale::none && ops.empty(); }
    bool operator==(const Chain&) const = default;
};

Chain chain_of(const Problem& problem);

// "none", "bias+add+relu", "beta+bias", "scale_tensor+gelu"; scales first, then beta, then the operations in order.
std::string print_chain(const Chain& chain);
Result<Chain> parse_chain(std::string_view text);

}  // namespace tilewise
