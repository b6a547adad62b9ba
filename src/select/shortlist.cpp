// SPDX-License-Identifier: MIT
#include "select/shortlist.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "kernels/common/random.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

// The same, in the same tiles.
using Tiling = std::tuple<Algorithm, int, int>;
Tiling tiling_of(const KernelConfig& c) { return {algorithm_of(c), c.tile.m, c.tile.n}; }

constexpr int kMostOfATiling = 3;
constexpr double kWorstMeasured = 2.0;     // times the best prediction
constexpr std::size_t kReservedShare = 4;  // one place in so many is for algorithms that are not among the first

std::uint64_t text_bits(const std::string& text, std::uint64_t seed) {
    std::uint64_t bits = seed;
    for (const char c : text) bits = random_bits(bits, static_cast<unsigned char>(c));
    return bits;
}

std::vector<Candidate> sample_candidates(const std::vector<Candidate>& ranked, std::uint64_t seed) {
    constexpr std::size_t kFirst = 24, kOtherKinds = 8, kDrawn = 8;
    std::set<std::size_t> taken;
    std::set<Algorithm> algorithms;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
        const bool is_first = i < kFirst, is_new = algorithms.insert(algorithm_of(ranked[i].kernel->config)).second;
        if (is_first || (is_new && taken.size() < kFirst + kOtherKinds)) taken.insert(i);
    }
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
        if (!taken.contains(i)) rest.push_back(i);
    }
    std::sort(rest.begin(), rest.end(),
              [&](std::size_t a, std::size_t b) { return random_bits(seed, a) < random_bits(seed, b); });
    taken.insert(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(kDrawn, rest.size())));
    std::vector<Candidate> sample;
    sample.reserve(taken.size());
    for (const std::size_t i : taken) sample.push_back(ranked[i]);
    return sample;
}

}  // namespace

Algorithm algorithm_of(const KernelConfig& c) {
    return {c.warp_tile.m, c.swap_ab, c.cluster_k, c.split_k > 1, c.stream_k != StreamK::off};
}

std::vector<std::size_t> places_to_learn(const std::vector<Candidate>& ranked) {
    std::vector<std::size_t> places;
    places.reserve(kFirstLearned + kOtherLearned);
    std::vector<Algorithm> algorithms;
    double slowest = 0;
    for (std::size_t i = 0; i < ranked.size() && places.size() < kFirstLearned + kOtherLearned; ++i) {
        if (!ranked[i].is_as_given || !ranked[i].predicted_us) continue;
        if (places.empty()) slowest = kSlowestLearned * *ranked[i].predicted_us;
        const bool is_first = places.size() < kFirstLearned;
        if (!is_first && *ranked[i].predicted_us > slowest) continue;
        const Algorithm algorithm = algorithm_of(ranked[i].kernel->config);
        const bool is_new = std::ranges::find(algorithms, algorithm) == algorithms.end();
        if (is_new) algorithms.push_back(algorithm);
        if (is_first || is_new) places.push_back(i);
    }
    return places;
}

KernelList shortlist(const std::vector<Candidate>& ranked, std::size_t count) {
    KernelList chosen;
    const bool predicted = !ranked.empty() && ranked.front().predicted_us.has_value();
    std::map<Tiling, int> tilings;
    std::set<Algorithm> algorithms;
    const auto take = [&](const Candidate& candidate) {
        ++tilings[tiling_of(candidate.kernel->config)];
        algorithms.insert(algorithm_of(candidate.kernel->config));
        chosen.push_back(candidate.kernel);
    };
    const auto is_chosen = [&](const Candidate& candidate) {
        return std::find(chosen.begin(), chosen.end(), candidate.kernel) != chosen.end();
    };
    if (predicted) {
        const double worst = kWorstMeasured * *ranked.front().predicted_us;
        for (const Candidate& candidate : ranked) {
            if (chosen.size() + count / kReservedShare >= count) break;
            if (tilings[tiling_of(candidate.kernel->config)] < kMostOfATiling) take(candidate);
        }
        for (const Candidate& candidate : ranked) {
            if (chosen.size() >= count || *candidate.predicted_us > worst) break;
            if (!algorithms.contains(algorithm_of(candidate.kernel->config))) take(candidate);
        }
    }
    for (const Candidate& candidate : ranked) {
        if (chosen.size() >= count) break;
        if (!is_chosen(candidate)) take(candidate);
    }
    return chosen;
}

std::vector<Candidate> pool_of(const Problem& problem, std::vector<Candidate> ranked, KernelPool pool,
                               std::uint64_t seed) {
    if (pool == KernelPool::all) return ranked;
    return sample_candidates(ranked, text_bits(print_problem(problem), seed));
}

}  // namespace tilewise
