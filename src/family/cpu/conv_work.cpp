// SPDX-License-Identifier: MIT
// Prices the counts of conv_counts.hpp.
#include <algorithm>
#include <cmath>

#include "family/cpu/micro_kernel_work.hpp"
#include "family/cpu/works.hpp"

namespace tilewise {
namespace {

// Kernels that do the same as another, but for problems that the other cannot run, give way to it and to those that are
// nearly as good: among a few that are measured, they would be one kernel twice.
double twin_factor(const KernelConfig& c) {
    constexpr double kTieBreak = 0.015;
    double factor = 1 + (c.split_image ? kTieBreak : 0);
    for (int groups = 2; groups < c.num_groups_to_merge; groups *= 2) factor += kTieBreak;
    return factor;
}

template <class N>
N implicit_steps(const ImplicitWork& w, const ArchSpec& arch) {
    const auto& price = arch.prices.blocked_conv;
    return micro_kernel_steps<N>(w.product, price) +
           term<N>("gathered rows", w.gathered_rows, price.gathered_row_steps) +
           term<N>("gathered runs", w.gathered_runs, price.gathered_run_steps) +
           term<N>("gathered vectors", w.gathered_vectors, price.gathered_vector_steps) +
           term<N>("pointers", w.pointers, price.pointer_steps) +
           term<N>("pointed reads", w.pointed_reads, price.pointed_read_steps) +
           term<N>("crowded reads", w.crowded_reads, price.crowded_read_steps) +
           term<N>("packed a", w.packed_a, price.packed_a_steps) +
           term<N>("turned b", w.turned_b, price.turned_b_steps) +
           term<N>("copied b", w.copied_b, price.copied_b_steps) +
           term<N>("copied runs", w.copied_runs, price.copied_run_steps) + term<N>("sums", w.sums, price.sum_steps) +
           term<N>("tasks", w.tasks, price.task_steps);
}

template <class N, class Group>
N direct_steps(const DirectWork& w, const Group& price) {
    return counted<N>("products", w.products) + term<N>("reads", w.reads, price.read_steps) +
           term<N>("spreads", w.spreads, price.spread_steps) + term<N>("far reads", w.far_reads, price.far_read_steps) +
           term<N>("spilled reads", w.spilled_reads, price.spilled_share) * N(price.far_read_steps) +
           term<N>("masked reads", w.masked_reads, price.masked_read_steps) +
           term<N>("weight reads", w.weight_reads, price.weight_read_steps) + term<N>("rows", w.rows, price.row_steps) +
           term<N>("generic rows", w.generic_rows, price.generic_row_steps) +
           term<N>("blocks", w.blocks, price.block_steps) + term<N>("stores", w.stores, price.store_steps) +
           term<N>("packed", w.packed, price.packed_steps) + term<N>("lines", w.lines, price.line_steps);
}

// Steps shared out to threads, beside memory; of the two, the shorter is not hidden quite.
template <class N>
N conv_us(const WorkProblem& problem, const KernelConfig& c, N steps, const Price& not_hidden) {
    const ArchSpec& arch = problem.arch;
    const double count = problem.conv->parts(c), workers = std::min<double>(problem.threads, count);
    const double speedup = count / std::ceil(count / workers);
    const N compute =
        named("compute", named("steps", steps) * step_us<N>(c, arch) / counted<N>("workers", speedup) * twin_factor(c));
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps));
    return overlap(N(not_hidden), {compute, memory}) +
           named("launch", rate<N>(arch.launch_us) * (problem.threads > 1 ? 2.0 : 1.0));
}

}  // namespace

template <class N>
N blocked_conv_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const N steps = implicit_steps<N>(problem.conv->implicit_work(c), problem.arch);
    return conv_us<N>(problem, c, steps, problem.arch.prices.blocked_conv.not_hidden_share);
}
template double blocked_conv_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term blocked_conv_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted blocked_conv_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

WorkColumns blocked_conv_columns(const KernelConfig& c, const ArchSpec& arch) {
    return WorkColumns(least_product_us(c, arch, arch.prices.blocked_conv));
}

double blocked_conv_least(const WorkProblem& problem, const KernelConfig&, const WorkColumns& columns) {
    const ArchSpec& arch = problem.arch;
    const double compute = problem.conv->least_products() * columns.as<double>() / problem.threads;
    const double memory = problem.bytes / (arch.memory_gbps * 1e3);
    return overlap(double(arch.prices.blocked_conv.not_hidden_share), {compute, memory}) +
           arch.launch_us * (problem.threads > 1 ? 2.0 : 1.0);
}

template <class N>
N direct_conv_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const Prices& prices = problem.arch.prices;
    const bool is_weight = c.op == Op::conv_bwd_weight;
    const DirectWork work = problem.conv->direct_work(c);
    const N steps = is_weight ? direct_steps<N>(work, prices.direct_wgrad) : direct_steps<N>(work, prices.direct_conv);
    return conv_us<N>(problem, c, steps,
                      is_weight ? prices.direct_wgrad.not_hidden_share : prices.direct_conv.not_hidden_share);
}
template double direct_conv_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term direct_conv_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted direct_conv_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
