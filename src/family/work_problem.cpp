// SPDX-License-Identifier: MIT
#include "family/work_problem.hpp"

#include "problem/facts.hpp"

namespace tilewise {

// As kernels/gpu/activation.hpp counts them.
ChainCounts chain_counts(const Problem& problem) {
    ChainCounts counts;
    counts.has_bias = has_bias(problem);
    counts.tensors = static_cast<double>(d_count(problem)) + (problem.beta ? 1 : 0);
    counts.instructions = counts.tensors + (problem.scale == Scale::row ? 2 : problem.scale == Scale::tensor ? 1 : 0);
    const auto add = [&](double instructions, double powers) {
        counts.instructions += instructions, counts.powers += powers;
    };
    for (const EpilogueOp op : problem.epilogue) {
        switch (op) {
            case EpilogueOp::bias:
            case EpilogueOp::relu: add(1, 0); break;
            case EpilogueOp::relu6: add(2, 0); break;
            case EpilogueOp::gelu:
            case EpilogueOp::tanh: add(12, 2); break;
            case EpilogueOp::gelu_tanh: add(8, 2); break;
            case EpilogueOp::silu: add(5, 2); break;
            case EpilogueOp::sigmoid: add(4, 2); break;
            case EpilogueOp::hardswish: add(4, 0); break;
            case EpilogueOp::add:
            case EpilogueOp::mul: break;  // counted with the tensors
        }
    }
    return counts;
}

WorkProblem::WorkProblem(const Problem& problem, const ArchSpec& own_arch, int thread_count)
    : view(problem), arch(own_arch), threads(thread_count), bytes(bytes_moved(problem)), chain(chain_counts(problem)) {
    if (!arch.is_gpu() && is_conv(problem.op)) conv.emplace(view, arch);
}

}  // namespace tilewise
