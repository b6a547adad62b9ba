// SPDX-License-Identifier: MIT
#include "benchmarks/summary.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/statistics.hpp"

namespace tilewise::bench {
namespace {

// The ratios of one line of the table, peer by peer.
struct Group {
    std::string title;
    std::vector<std::vector<double>> peers;
    std::vector<double> fastest;  // of the peers, problem by problem
    std::vector<double> rules;
};

void add(std::vector<Group>& groups, const std::string& title, const Comparison& one) {
    std::size_t i = 0;
    while (i < groups.size() && groups[i].title != title) ++i;
    if (i == groups.size()) groups.push_back({title, std::vector<std::vector<double>>(one.peers_us.size()), {}, {}});
    Group& group = groups[i];
    group.rules.push_back(one.us / one.rules_us);
    double fastest_us = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < one.peers_us.size(); ++p) {
        if (!one.peers_us[p]) continue;
        group.peers[p].push_back(*one.peers_us[p] / one.us);
        fastest_us = std::min(fastest_us, *one.peers_us[p]);
    }
    if (std::isfinite(fastest_us)) group.fastest.push_back(fastest_us / one.us);
}

std::string cell(const std::vector<double>& ratios) {
    return ratios.empty() ? " - |" : fmt::format(" {:.2f} |", geomean(ratios));
}

}  // namespace

std::string form_of(const Problem& problem) { return problem.packed_b ? "packed" : "plain"; }

std::string summary(const std::vector<Comparison>& comparisons, const std::vector<std::string>& peer_names) {
    std::vector<Group> groups, totals;
    for (const Comparison& one : comparisons) {
        const Problem& problem = one.of.problem;
        const std::string kind = fmt::format("{} | {}", name_of(problem.dtype_a), form_of(problem));
        add(groups, fmt::format("{} | {}", kind, one.of.family), one);
        add(totals, fmt::format("{} | all", kind), one);
    }
    groups.insert(groups.end(), totals.begin(), totals.end());
    std::string text = "| type | B | family | cases |", rule = "|---|---|---|---:|";
    for (const std::string& name : peer_names) {
        text += fmt::format(" {} |", name);
        rule += "---:|";
    }
    text += fmt::format(" fastest peer | model alone |\n{}---:|---:|\n", rule);
    for (const Group& group : groups) {
        text += fmt::format("| {} | {} |", group.title, group.rules.size());
        for (const auto& ratios : group.peers) text += cell(ratios);
        text += cell(group.fastest) + cell(group.rules) + "\n";
    }
    return text;
}

}  // namespace tilewise::bench
