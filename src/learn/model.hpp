// SPDX-License-Identifier: MIT
// A learned selection model: trees that say by how much the analytic model is wrong about a kernel, as the logarithm of measured over
// predicted time, and what they were trained on. Far from that the correction fades towards the mean of the data, so that kernels keep
// the analytic model's order.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "learn/features.hpp"
#include "learn/forest.hpp"
#include "learn/kernel_kind.hpp"

namespace tilewise {

// A kernel that may run a problem, as the analytic model sees it.
struct PricedKernel {
    const KernelConfig* config = nullptr;
    double analytic_us = 0;
    WorkParts parts{};
};

struct Estimate {
    double us = 0;
    double correction = 0;          // log(us / analytic us)
    std::optional<double> error{};  // relative, typical of the kind; unset for a kind that the model has not seen
};

// What a folder of a model says about it, without its trees.
struct ModelCard {
    Op op = Op::gemm;
    std::string arch;
    std::string chip;  // whose prices it corrects; empty in a model that does not say
    std::vector<DType> dtypes;
    double mean = 0;  // of the target
    struct Range {
        std::size_t column;
        double least, most;
    };
    std::vector<Range> ranges;
    struct Kind {
        KernelKind kind;
        double error;
    };
    std::vector<Kind> kinds;
    Json json;  // all of it

    bool covers(const Problem& problem, const ArchSpec& arch_spec) const;

    // `file` is for messages. Refuses other features than this library's, telling both digests.
    static Result<ModelCard> parse(std::string_view text, const std::string& file);
};

class Model {
public:
    static constexpr std::int64_t kLeastRows = 8;  // of a kind that counts as seen

    // `place` names the folder for messages.
    static Result<Model> make(ModelCard card, std::string_view trees, const std::string& place);

    const ModelCard& card() const { return card_; }
    const std::string& place() const { return place_; }

    // How much of the correction is taken: 1 within the data and up to an octave beyond, 0 from two octaves on.
    double weight(const ProblemFeatures& problem) const;
    // One for each kernel.
    void estimate(const ProblemFeatures& problem, std::span<const PricedKernel> kernels,
                  std::span<Estimate> estimates) const;

    // By how much the correction of the first would be another with a column of the second's, those with the largest effect first.
    struct Effect {
        std::string name;
        double correction;
    };
    std::vector<Effect> effects(const ProblemFeatures& problem, const PricedKernel& first, const PricedKernel& second,
                                std::size_t most) const;

    const Forest& forest() const { return forest_; }

private:
    Model(ModelCard card, Forest forest, std::string place)
        : card_(std::move(card)), forest_(std::move(forest)), place_(std::move(place)) {}
    const double* error_of(const KernelConfig& config) const;  // null for a kind that was not seen

    ModelCard card_;
    Forest forest_;
    std::string place_;
};

// The chance that the first is no slower than the second, by normal errors of their kinds.
double confidence(const Estimate& first, const Estimate& second);

}  // namespace tilewise
