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
    std::size_t cases = 0;
    std::vector<std::vector<double>> peers;
    std::vector<double> fastest;  // of the peers, problem by problem
    std::vector<double> rules;
};

void add(std::vector<Group>& groups, const std::string& title, const Comparison& one) {
    std::size_t i = 0;
    while (i < groups.size() && groups[i].title != title) ++i;
    if (i == groups.size()) groups.push_back({title, 0, std::vector<std::vector<double>>(one.peers_us.size()), {}, {}});
    Group& group = groups[i];
    ++group.cases;
    if (!one.ours) return;
    group.rules.push_back(one.ours->us / one.ours->rules_us);
    double fastest_us = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < one.peers_us.size(); ++p) {
        if (!one.peers_us[p]) continue;
        group.peers[p].push_back(*one.peers_us[p] / one.ours->us);
        fastest_us = std::min(fastest_us, *one.peers_us[p]);
    }
    if (std::isfinite(fastest_us)) group.fastest.push_back(fastest_us / one.ours->us);
}

std::string cell(const std::vector<double>& ratios) {
    return ratios.empty() ? " - |" : fmt::format(" {:.2f} |", geomean(ratios));
}

}  // namespace

std::string summary(const std::vector<Comparison>& comparisons, const std::vector<std::string>& kinds,
                    const std::vector<std::string>& peer_names) {
    std::vector<Group> groups, totals;
    for (const Comparison& one : comparisons) {
        std::string kind;
        for (const std::string& word : kind_of(one.of)) kind += word + " | ";
        add(groups, kind + one.of.family, one);
        add(totals, kind + "all", one);
    }
    groups.insert(groups.end(), totals.begin(), totals.end());
    std::string text = "|", rule = "|";
    for (const std::string& kind : kinds) {
        text += fmt::format(" {} |", kind);
        rule += "---|";
    }
    text += " family | cases |";
    rule += "---|---:|";
    for (const std::string& name : peer_names) {
        text += fmt::format(" {} |", name);
        rule += "---:|";
    }
    text += fmt::format(" fastest peer | model alone |\n{}---:|---:|\n", rule);
    for (const Group& group : groups) {
        text += fmt::format("| {} | {} |", group.title, group.cases);
        for (const auto& ratios : group.peers) text += cell(ratios);
        text += cell(group.fastest) + cell(group.rules) + "\n";
    }
    return text;
}

}  // namespace tilewise::bench
