// SPDX-License-Identifier: MIT
#include "select/shortlist.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tilewise {
namespace {

// Kernels that compute alike: the instruction, which operand fills its rows, and how the reduction is shared out.
using Way = std::tuple<int, bool, bool, bool, bool>;
Way way_of(const KernelConfig& c) {
    return {c.warp_tile.m, c.swap_ab, c.cluster_k, c.split_k > 1, c.stream_k != StreamK::off};
}
// And which tiles: of each, few are measured.
using Kind = std::tuple<Way, int, int>;
Kind kind_of(const KernelConfig& c) { return {way_of(c), c.tile.m, c.tile.n}; }

constexpr int kEachKind = 3;
constexpr double kHopeless = 2.0;        // times the best prediction
constexpr std::size_t kOtherWaysOf = 4;  // one place in so many is kept for ways that are not among the first

}  // namespace

KernelList shortlist(const std::vector<Candidate>& ranked, std::size_t count) {
    KernelList chosen;
    const bool predicted = !ranked.empty() && ranked.front().predicted_us.has_value();
    std::map<Kind, int> kinds;
    std::set<Way> ways;
    const auto take = [&](const Candidate& candidate) {
        ++kinds[kind_of(candidate.kernel->config)];
        ways.insert(way_of(candidate.kernel->config));
        chosen.push_back(candidate.kernel);
    };
    const auto is_chosen = [&](const Candidate& candidate) {
        return std::find(chosen.begin(), chosen.end(), candidate.kernel) != chosen.end();
    };
    if (predicted) {
        const double worst = kHopeless * *ranked.front().predicted_us;
        for (const Candidate& candidate : ranked) {
            if (chosen.size() + count / kOtherWaysOf >= count) break;
            if (kinds[kind_of(candidate.kernel->config)] < kEachKind) take(candidate);
        }
        for (const Candidate& candidate : ranked) {
            if (chosen.size() >= count || *candidate.predicted_us > worst) break;
            if (!ways.contains(way_of(candidate.kernel->config))) take(candidate);
        }
    }
    for (const Candidate& candidate : ranked) {
        if (chosen.size() >= count) break;
        if (!is_chosen(candidate)) take(candidate);
    }
    return chosen;
}

}  // namespace tilewise
