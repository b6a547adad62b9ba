// SPDX-License-Identifier: MIT
// A product by blocks on a GPU: rounds of tiles over the units, each as long as its arithmetic or its loads take, beside what memory and
// cache allow in all. GEMMs and the convolutions that gather are such products.
#pragma once

#include "family/work_problem.hpp"

namespace tilewise {

// The work of a product, whose view may be another than the problem's own.
template <class N>
N block_product_us(const GemmView& view, const WorkProblem& problem, const KernelConfig& config);

// Units come in groups, and the blocks of a cluster in one of them, so that some units stay empty.
double usable_units(const KernelConfig& config, const ArchSpec& arch);

// The reads of a unit: a load takes its latency, however much is on its way, and then its turn at the port.
template <class N>
N unit_gbps(const Price& port_gbps, const Price& latency_us, N bytes_on_the_way) {
    return N(1.0) / (N(1.0) / N(port_gbps) + N(latency_us) * 1e3 / bytes_on_the_way);
}

}  // namespace tilewise
