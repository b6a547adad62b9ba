// SPDX-License-Identifier: MIT
// The kernels of a registry as a choice walks over them, made once. Kernels whose fields the shared rules of config/fit.hpp cannot tell
// apart are one bucket, asked about once. Of those in the buckets that are left, a time that no prediction falls below says which cannot
// be among the first: only the others are planned and predicted. The outcome is the beginning of select_kernel's ranking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "config/arch_spec.hpp"
#include "family/family.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"
#include "select/padded_offers.hpp"
#include "select/select.hpp"
#include "select/shortlist.hpp"

namespace tilewise {

// What a choice did, for who wants to know where its time goes.
struct ChoiceCost {
    double bounds_us = 0;                         // buckets and bounds
    double plans_us = 0;                          // rules of single kernels, and their plans
    double analytic_us = 0;                       // predictions
    int bounded = 0, planned = 0, predicted = 0;  // kernels
};

class ChoiceTable {
public:
    // Kernels for other archs and those without code are left out. The arch must outlive the table.
    ChoiceTable(const KernelList& kernels, const ArchSpec& arch);

    std::size_t size() const { return rows_.size(); }
    std::size_t bucket_count() const { return buckets_.size(); }

    // The first `most` of the kernels that may run the problem, which is not empty, as select_kernel ranks them without padding; the
    // first has its plan, where finding it took one. Allocates for these alone, not for kernels that are refused.
    std::vector<Candidate> first(const Problem& problem, int threads, std::size_t most,
                                 ChoiceCost* cost = nullptr) const;
    // Gives the offers the candidates for the problem with whole channels, as first has them, until there are enough, or none of those that
    // are left may be the best.
    void collect(const Problem& whole, int threads, PaddedOffers& offers) const;
    // Those that a learned model looks at, in the same order, with the parts of their work: what places_to_learn takes of the whole
    // ranking.
    std::vector<Candidate> to_learn(const Problem& problem, int threads, ChoiceCost* cost = nullptr) const;

private:
    struct Row {
        KernelPtr kernel;
        const Family* family;
        std::uint32_t place;  // in the registry's order
        WorkColumns columns;
        std::uint16_t algorithm;  // among algorithms_
    };
    struct Bucket {
        std::uint32_t begin, end;  // of rows
    };
    class Search;

    const ArchSpec& arch_;
    std::vector<Row> rows_;  // bucket after bucket
    std::vector<Algorithm> algorithms_;
    std::vector<Bucket> buckets_;
};

}  // namespace tilewise
