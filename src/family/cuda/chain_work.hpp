// SPDX-License-Identifier: MIT
// The work of an epilogue beside that of its product: what it does to a tile's results before they leave (kernels/gpu/activation.hpp).
#pragma once

#include "family/work_problem.hpp"

namespace tilewise {

// The cycles that a unit takes for the chain of a tile with so many results; 0 for a plain one.
template <class N>
N chain_cycles(const WorkProblem& problem, double results);

// The time that a chip takes for the chain of all results, where every unit has as many.
template <class N>
N spread_chain_us(const WorkProblem& problem) {
    if (problem.chain.is_plain()) return 0.0;
    const double results = static_cast<double>(problem.view.elements[2]) / problem.arch.units;
    return cycles_us<N>("epilogue", chain_cycles<N>(problem, results), problem.arch);
}

// Those that nothing hides. Warpgroups that take turns have the products of one beside the results of the other, which take
// `product_cycles`; blocks that share a unit have each other.
template <class N>
N exposed_chain_cycles(const WorkProblem& problem, const KernelConfig& config, double neighbours, N product_cycles) {
    if (problem.chain.is_plain()) return 0.0;
    const N cycles = chain_cycles<N>(problem, static_cast<double>(config.tile.m) * config.tile.n);
    if (config.pipeline == Pipeline::compv5) {
        const auto hidden = N(problem.arch.prices.epilogue.hidden_share);
        return longest({cycles * hidden, cycles - product_cycles});
    }
    return cycles / neighbours;
}

}  // namespace tilewise
