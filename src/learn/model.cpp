// SPDX-License-Identifier: MIT
#include "learn/model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/json_object.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::string_view kTarget = "log_ratio";
constexpr double kMostCorrection = 3;  // a factor of 20 either way: what is more is no correction

std::optional<double> number_of(const Json& json) {
    if (json.integer()) return static_cast<double>(*json.integer());
    if (json.real() && std::isfinite(*json.real())) return *json.real();
    return std::nullopt;
}

void read_features(JsonObject& from, const ModelCard& card) {
    const Json* features = from.child("features");
    if (!features) return;
    const Json* hash = features->find("hash");
    const std::string& own = feature_schema(card.op).hash;
    if (!hash || !hash->string() || *hash->string() != own) {
        from.fail("features",
                  fmt::format("have the feature hash '{}'; need '{}', this library's for {}: train the model with this "
                              "version of tilewise",
                              hash && hash->string() ? *hash->string() : "", own, name_of(card.op)));
    }
}

void read_ranges(JsonObject& from, ModelCard& card) {
    const Json* ranges = from.child("ranges");
    if (!ranges) return;
    const auto& columns = feature_schema(card.op).columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (!columns[i].is_ranged) continue;
        const Json* range = ranges->find(columns[i].name);
        const bool is_pair = range && range->array() && range->array()->size() == 2;
        const auto least = is_pair ? number_of((*range->array())[0]) : std::nullopt;
        const auto most = is_pair ? number_of((*range->array())[1]) : std::nullopt;
        if (!least || !most || *least > *most) {
            return from.fail("ranges", fmt::format("needs two ascending numbers for {}", columns[i].name));
        }
        card.ranges.push_back({i, *least, *most});
    }
}

void read_kinds(JsonObject& from, ModelCard& card) {
    const Json* kinds = from.child("kinds");
    if (!kinds) return;
    if (!kinds->object()) return from.fail("kinds", "needs an object of kinds of kernels");
    for (const auto& [text, of] : *kinds->object()) {
        const Json* rows = of.find("rows");
        const Json* error = of.find("error");
        const double value = error ? number_of(*error).value_or(-1) : -1;
        if (!rows || !rows->integer() || value < 0) {
            return from.fail("kinds",
                             fmt::format("'{}' needs rows, a whole number, and error, a number of 0 or more", text));
        }
        const auto kind = parse_kind(text);  // of another version where it cannot be read: none of our kernels is of it
        if (kind && *rows->integer() >= Model::kLeastRows) card.kinds.push_back({*kind, value});
    }
}

}  // namespace

Result<ModelCard> ModelCard::parse(std::string_view text, const std::string& file) {
    const auto json = Json::parse(text);
    if (!json) return usage_error(fmt::format("{}: {}", file, json.error().message));
    JsonObject from(*json, file);
    if (!from.ok()) return from.finish().error();
    ModelCard card;
    from.integer("format", kFormat, kFormat);
    const auto op = parse_enum<Op>(from.text("op"));
    if (!op) from.fail("op", op.error().message);
    card.op = op ? *op : Op::gemm;
    card.arch = from.text("arch");
    card.chip = from.text_or("chip", "");
    for (const std::string& name : from.texts("dtypes")) {
        const auto dtype = parse_enum<DType>(name);
        if (!dtype) from.fail("dtypes", dtype.error().message);
        if (dtype) card.dtypes.push_back(*dtype);
    }
    if (from.text("target") != kTarget)
        from.fail("target", fmt::format("needs '{}', log(measured / analytic time)", kTarget));
    if (const Json* mean = from.child_or_null("mean")) {
        const auto value = number_of(*mean);
        if (!value || std::abs(*value) > kMostCorrection)
            from.fail("mean", fmt::format("needs a number from -{0} to {0}", kMostCorrection));
        card.mean = value.value_or(0);
    }
    if (from.ok()) read_features(from, card);
    if (from.ok()) read_ranges(from, card);
    if (from.ok()) read_kinds(from, card);
    // What else it says is for people.
    for (const auto& [key, value] : *json->object()) static_cast<void>(from.child_or_null(key));
    if (auto status = from.finish(); !status) return status.error();
    card.json = *json;
    return card;
}

bool ModelCard::covers(const Problem& problem, const ArchSpec& arch_spec) const {
    return op == problem.op && arch == arch_spec.name && (chip.empty() || chip == arch_spec.chip) &&
           std::ranges::find(dtypes, problem.dtype_a) != dtypes.end();
}

Result<Model> Model::make(ModelCard card, std::string_view trees, const std::string& place) {
    auto forest = Forest::parse(trees, place + "/model.txt");
    if (!forest) return forest.error();
    const auto& columns = feature_schema(card.op).columns;
    const bool same = std::ranges::equal(forest->names(), columns, {}, {}, &FeatureColumn::name);
    if (!same) {
        return usage_error(
            fmt::format("'{}/model.txt' has other columns than the features of {}, which tilewise_feature_schema "
                        "lists: train the model with feature_name set to those, in that order",
                        place, name_of(card.op)));
    }
    return Model(std::move(card), std::move(*forest), place);
}

double Model::weight(const ProblemFeatures& problem) const {
    double beyond = 0;  // octaves
    for (const auto& [column, least, most] : card_.ranges) {
        beyond = std::max({beyond, least - problem[column], problem[column] - most});
    }
    return std::clamp(2 - beyond, 0.0, 1.0);
}

const double* Model::error_of(const KernelConfig& config) const {
    const auto found = std::ranges::find(card_.kinds, kind_of(config), &ModelCard::Kind::kind);
    return found == card_.kinds.end() ? nullptr : &found->error;
}

void Model::estimate(const ProblemFeatures& problem, std::span<const PricedKernel> kernels,
                     std::span<Estimate> estimates) const {
    constexpr std::size_t kAtOnce = 32;
    const std::size_t columns = forest_.column_count();
    const double weight_of_problem = weight(problem);
    std::array<double, kAtOnce * kMostFeatures> rows;  // NOLINT: filled as far as it is read
    std::array<double, kAtOnce> sums;                  // NOLINT: likewise
    for (std::size_t begin = 0; begin < kernels.size(); begin += kAtOnce) {
        const std::size_t count = std::min(kAtOnce, kernels.size() - begin);
        for (std::size_t i = 0; i < count; ++i) {
            const PricedKernel& kernel = kernels[begin + i];
            problem.fill(*kernel.config, kernel.analytic_us, kernel.parts, &rows[i * columns]);
        }
        forest_.score(std::span(rows).first(count * columns), std::span(sums).first(count), problem.size());
        for (std::size_t i = 0; i < count; ++i) {
            const PricedKernel& kernel = kernels[begin + i];
            const double* error = error_of(*kernel.config);
            const double taken = error ? weight_of_problem : 0;
            const double learned = std::clamp(sums[i], -kMostCorrection, kMostCorrection);
            const double correction = taken * learned + (1 - taken) * card_.mean;
            estimates[begin + i] = {kernel.analytic_us * std::exp(correction), correction,
                                    error ? std::optional(std::expm1(*error)) : std::nullopt};
        }
    }
}

std::vector<Model::Effect> Model::effects(const ProblemFeatures& problem, const PricedKernel& first,
                                          const PricedKernel& second, std::size_t most) const {
    const std::size_t columns = forest_.column_count();
    std::vector<double> row(columns), other(columns), rows;
    problem.fill(*first.config, first.analytic_us, first.parts, row.data());
    problem.fill(*second.config, second.analytic_us, second.parts, other.data());
    std::vector<Effect> effects;
    rows = row;
    for (std::size_t i = 0; i < columns; ++i) {
        if (row[i] == other[i]) continue;
        effects.push_back({forest_.names()[i], 0});
        rows.insert(rows.end(), row.begin(), row.end());
        rows[rows.size() - columns + i] = other[i];
    }
    std::vector<double> sums(effects.size() + 1);
    forest_.score(rows, sums);
    for (std::size_t i = 0; i < effects.size(); ++i) effects[i].correction = sums.front() - sums[i + 1];
    std::erase_if(effects, [](const Effect& effect) { return effect.correction == 0; });
    std::ranges::stable_sort(effects, std::greater(), [](const Effect& effect) { return std::abs(effect.correction); });
    effects.resize(std::min(most, effects.size()));
    return effects;
}

double confidence(const Estimate& first, const Estimate& second) {
    constexpr double kUnseenError = 0.3;  // of a kind that the model knows nothing of
    const double gap = std::log(second.us / first.us);
    const double spread =
        std::hypot(std::log1p(first.error.value_or(kUnseenError)), std::log1p(second.error.value_or(kUnseenError)));
    if (spread <= 0) return gap > 0 ? 1 : 0.5;
    return std::erfc(-gap / (spread * std::sqrt(2.0))) / 2;
}

}  // namespace tilewise
