// SPDX-License-Identifier: MIT
#include "family/work_problem.hpp"

#include "problem/facts.hpp"

namespace tilewise {

WorkProblem::WorkProblem(const Problem& problem, const ArchSpec& own_arch, int thread_count)
    : view(problem), arch(own_arch), threads(thread_count), bytes(bytes_moved(problem)) {
    if (arch.backend == Backend::cpu && is_conv(problem.op)) conv.emplace(view, arch);
}

}  // namespace tilewise
