// SPDX-License-Identifier: MIT
#include "select/learned_ranker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "family/family.hpp"
#include "select/shortlist.hpp"

namespace tilewise {
namespace {

constexpr std::size_t kEffectsTold = 5;
constexpr double kPercent = 100;

// The candidates that the model looked at, corrected and in front.
struct Learned {
    const Model* model = nullptr;  // null where there is none, or nothing to look at
    double weight = 1;
    std::vector<PricedKernel> priced{};
    std::vector<Note> notes{};
};

Learned look(const RankContext& context, const std::vector<std::size_t>& places, Selection& selection) {
    Learned learned;
    if (!context.models || !context.arch) return learned;
    const FoundModel& found = context.models->find(context.problem, *context.arch);
    learned.notes = found.notes;
    if (!found.model || places.empty()) return learned;
    learned.model = &*found.model;
    const WorkProblem work(context.problem, *context.arch, context.threads);
    const ProblemFeatures features(work);
    learned.weight = found.model->weight(features);
    learned.priced.reserve(places.size());
    for (const std::size_t place : places) {
        const Candidate& candidate = selection.candidates[place];
        const KernelConfig& config = candidate.kernel->config;
        const double analytic_us = candidate.learned ? candidate.learned->analytic_us : *candidate.predicted_us;
        learned.priced.push_back(
            {&config, analytic_us, candidate.parts ? *candidate.parts : work_parts_of(work, config)});
    }
    std::vector<Estimate> estimates(places.size());
    found.model->estimate(features, learned.priced, estimates);
    for (std::size_t i = 0; i < places.size(); ++i) {
        Candidate& candidate = selection.candidates[places[i]];
        candidate.learned = LearnedTime{learned.priced[i].analytic_us, estimates[i]};
        candidate.predicted_us = estimates[i].us;
    }
    return learned;
}

// Priorities stay in front. Candidates that run another problem are no worse known than others: they keep their place by time, with the
// mean correction.
void put_in_order(const Model& model, std::vector<Candidate>& candidates) {
    const double mean = std::exp(model.card().mean);
    const auto is_ranked = [](const Candidate& candidate) { return candidate.learned || !candidate.is_as_given; };
    for (Candidate& candidate : candidates) {
        if (candidate.learned || !candidate.predicted_us) continue;
        candidate.mean_correction = mean;
        *candidate.predicted_us *= mean;
    }
    const auto comes_first = [&](const Candidate& a, const Candidate& b) {
        if (a.kernel->priority != b.kernel->priority) return a.kernel->priority > b.kernel->priority;
        if (is_ranked(a) != is_ranked(b)) return is_ranked(a);
        return is_ranked(a) && *a.predicted_us < *b.predicted_us;
    };
    // A candidate is large, and is moved once.
    std::vector<Candidate*> order;
    order.reserve(candidates.size());
    for (Candidate& candidate : candidates) order.push_back(&candidate);
    std::ranges::sort(order, [&](const Candidate* a, const Candidate* b) {
        return comes_first(*a, *b) || (!comes_first(*b, *a) && a < b);
    });
    std::vector<Candidate> sorted;
    sorted.reserve(candidates.size());
    for (Candidate* candidate : order) sorted.push_back(std::move(*candidate));
    candidates = std::move(sorted);
}

void forget_mean(std::vector<Candidate>& candidates) {
    for (Candidate& candidate : candidates) {
        if (candidate.predicted_us) *candidate.predicted_us /= std::exchange(candidate.mean_correction, 1.0);
    }
}

// Corrects the candidates and puts them in order; again where some of them went since.
Learned learn(const RankContext& context, Selection& selection) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < selection.candidates.size(); ++i) {
        if (selection.candidates[i].learned) places.push_back(i);
    }
    const bool is_new = places.empty();
    if (is_new) {
        forget_mean(selection.candidates);
        places = places_to_learn(selection.candidates);
    }
    Learned learned = look(context, places, selection);
    if (learned.model && is_new) put_in_order(*learned.model, selection.candidates);
    return learned;
}

LearnedChoice choice_of(const RankContext& context, const Learned& learned, const Selection& selection) {
    const Candidate& first = selection.candidates.front();
    LearnedChoice choice{learned.model->place(), learned.weight, 1, first.learned->analytic_us,
                         first.learned->estimate};
    const auto next = std::find_if(selection.candidates.begin() + 1, selection.candidates.end(),
                                   [](const Candidate& candidate) { return candidate.learned.has_value(); });
    if (next == selection.candidates.end()) return choice;
    choice.confidence = confidence(first.learned->estimate, next->learned->estimate);
    if (selection.looked_through > 0) return choice;  // nobody looks at more than the plan
    const auto priced = [&](const KernelConfig& config) {
        return std::ranges::find(learned.priced, &config, &PricedKernel::config);
    };
    const auto own = priced(first.kernel->config);
    auto other = std::ranges::min_element(learned.priced, {}, &PricedKernel::analytic_us);
    if (other == own) other = priced(next->kernel->config);
    const WorkProblem work(context.problem, *context.arch, context.threads);
    choice.effects = learned.model->effects(ProblemFeatures(work), *own, *other, kEffectsTold);
    return choice;
}

std::string why_learned(const LearnedChoice& choice, const std::string& threads, const Selection& selection) {
    std::string why = fmt::format(
        "the learned model gives it {:.1f} us{} (the analytic one {:.1f}), the least {}; {:.0f} % sure that it is no "
        "slower than the next",
        choice.estimate.us, threads, choice.analytic_us, among(selection), kPercent * choice.confidence);
    if (choice.weight < 1) {
        why += fmt::format("; {:.0f} % of the correction counts, since the problem lies beyond the model's data",
                           kPercent * choice.weight);
    }
    if (!choice.estimate.error) why += "; the model has not seen this kind of kernel, so that the analytic time stands";
    return why;
}

}  // namespace

Result<Ranked> rank_by_learned_model(const RankContext& context, Selection& selection) {
    Learned learned = learn(context, selection);
    Ranked ranked{std::nullopt, std::move(learned.notes)};
    const Candidate& first = selection.candidates.front();
    if (!learned.model) return ranked;
    if (!first.learned) {  // its time is the analytic model's and that of the copies
        ranked.plan = Plan{first.kernel, PlanSource::model,
                           fmt::format("{} it takes less than what the learned model gives others, {:.1f} us",
                                       first.padding ? "padded" : "with taps as channels", *first.predicted_us)};
        return ranked;
    }
    LearnedChoice choice = choice_of(context, learned, selection);
    ranked.plan = Plan{first.kernel, PlanSource::model,
                       why_learned(choice, on_threads(context, selection.candidates.front()), selection)};
    ranked.plan->learned = std::make_shared<const LearnedChoice>(std::move(choice));
    return ranked;
}

Result<Ranked> order_by_learned_model(const RankContext& context, Selection& selection) {
    return Ranked{std::nullopt, learn(context, selection).notes};
}

Result<Ranked> fail_without_learned_model(const RankContext& context, Selection&) {
    std::string why;
    if (context.models && context.arch) {
        for (const Note& note : context.models->find(context.problem, *context.arch).notes) why += "; " + note.message;
    }
    return unsupported_error(
        fmt::format("there is no learned model for {} in {} on {}{}; tilewise train makes one, --model-dir or "
                    "TILEWISE_MODEL_DIR name a folder with one, and the strategy auto does without",
                    name_of(context.problem.op), name_of(context.problem.dtype_a),
                    context.arch ? context.arch->name : "this device", why));
}

}  // namespace tilewise
