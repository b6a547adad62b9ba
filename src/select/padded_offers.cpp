// SPDX-License-Identifier: MIT
#include "select/padded_offers.hpp"

#include <algorithm>

#include "config/fit.hpp"
#include "family/family.hpp"

namespace tilewise {
namespace {

// Every copy is read and written once; what the caches spare is not counted. A GPU launches a kernel before its own, and one after
// it where the result is cut out.
double copying_us(const PaddedProblem& padded, const ArchSpec& arch) {
    if (padded.tensors.tensors.empty()) return 0;
    constexpr double kTouches = 2;
    const double us = kTouches * static_cast<double>(padded.tensors.bytes) / (arch.memory_gbps * 1e3);
    const int launches = !arch.is_gpu() ? 0 : padded.copied[2] ? 2 : 1;
    return us + launches * arch.prices.block_product.pack_launch_us.value;
}

bool is_before(const Candidate& a, const Candidate& b) {
    if (a.kernel->priority != b.kernel->priority) return a.kernel->priority > b.kernel->priority;
    return *a.predicted_us < *b.predicted_us;
}

}  // namespace

void sort_by_time(std::vector<Candidate>& candidates) {
    std::stable_sort(candidates.begin(), candidates.end(), is_before);
}

double padded_us(const PaddedProblem& padded, const KernelConfig& config, const ArchSpec& arch, int threads) {
    return predicted_us(WorkProblem(padded.problem, arch, threads), config) + copying_us(padded, arch);
}

PaddedOffers::PaddedOffers(const Problem& given, const Problem& whole, const ArchSpec& arch, int threads,
                           const Candidate* rival)
    : given_(given),
      view_(given),
      problems_(given, whole, arch),
      whole_(whole),
      arch_(arch),
      threads_(threads),
      rival_(rival),
      whole_copying_us_(copying_us(with_sizes_of(given, whole), arch)) {}

bool PaddedOffers::take(const Candidate& ranked) {
    const KernelConfig& config = ranked.kernel->config;
    const auto padded = problems_.of(config);
    if (!padded) return true;
    // Only the sizes count for the time.
    const bool is_whole = padded->problem.conv == whole_.conv;
    const double us =
        is_whole ? *ranked.predicted_us + copying_us(*padded, arch_) : padded_us(*padded, config, arch_, threads_);
    candidates_.push_back({ranked.kernel, us, std::nullopt, false});
    return candidates_.size() < kMost;
}

bool PaddedOffers::may_win(Priority priority, double least_us) const {
    const auto loses_to = [&](const Candidate& other) {
        if (other.kernel->priority != priority) return other.kernel->priority > priority;
        return *other.predicted_us <= least_us;
    };
    return !(rival_ && loses_to(*rival_)) && std::ranges::none_of(candidates_, loses_to);
}

// Joined taps need no copies.
bool PaddedOffers::may_win_whole(Priority priority, double least_us) const {
    return problems_.joins_taps() || may_win(priority, least_us + whole_copying_us_);
}

std::optional<PaddedOffers::Narrow> PaddedOffers::narrow(const KernelConfig& config) const {
    if (!breaks_shared_rule(view_, config, arch_)) return std::nullopt;  // it needs no padding
    auto sizes = padded_sizes(given_, config);
    if (!sizes || sizes->conv == whole_.conv) return std::nullopt;
    const double us = copying_us(with_sizes_of(given_, *sizes), arch_);
    return Narrow{std::move(*sizes), us};
}

std::size_t PaddedOffers::offer_best(Selection& selection) const {
    if (candidates_.empty()) return 0;
    const auto best = std::ranges::min_element(candidates_, is_before);
    return offer(std::span(&*best, 1), selection);
}

std::size_t PaddedOffers::offer(std::span<const Candidate> offers, Selection& selection) const {
    for (Candidate candidate : offers) {
        candidate.padding = problem_to_run(given_, candidate.kernel->config, arch_, nullptr, &whole_)->note;
        selection.candidates.push_back(std::move(candidate));
    }
    sort_by_time(selection.candidates);
    return offers.size();
}

}  // namespace tilewise
