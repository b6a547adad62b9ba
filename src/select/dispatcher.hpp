// SPDX-License-Identifier: MIT
// The whole way from a problem to something that can be launched: candidates, choice, build, load. Plans and executables are
// kept, so that a problem seen before costs a look-up. Safe from any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "build/builder.hpp"
#include "config/rule_set.hpp"
#include "device/device.hpp"
#include "problem/problem_hash.hpp"
#include "run/executable.hpp"
#include "select/measure_candidates.hpp"
#include "select/select.hpp"
#include "select/tuning_database.hpp"

namespace tilewise {

// automatic: a tuned record, else the analytic model. measure: the model's best few are timed on scratch tensors.
enum class Strategy : std::uint8_t { automatic, rules, first_fit, measure };
template <>
struct EnumNames<Strategy> {
    static constexpr std::string_view kind = "strategy";
    static constexpr std::array<std::string_view, 4> names = {"auto", "rules", "first-fit", "measure"};
};

struct SelectOptions {
    Strategy strategy = Strategy::automatic;
    RuleSet rule_set = RuleSet::standard;
    std::size_t measure_top = 8;
    MeasureProgress progress{};  // of measuring
    // A user's ranking: gets the candidates in the model's order and returns names, best first. Called without a lock.
    std::function<std::vector<std::string>(const Problem&, const std::vector<Candidate>&)> rank;
};

class Dispatcher {
public:
    // The database may be null; then nothing is remembered.
    Dispatcher(Device& device, Builder& builder, TuningDatabase* tuning)
        : device_(device), builder_(builder), tuning_(tuning) {}

    Device& device() { return device_; }
    Builder& builder() { return builder_; }

    // Everything about the choice, for showing.
    Result<Selection> select(const Problem& problem, const SelectOptions& options = {});
    // The plan alone, kept: a problem asked for again costs one look-up.
    Result<std::shared_ptr<const Plan>> plan(const Problem& problem, const SelectOptions& options = {});
    // A kernel asked for by config, whether or not a rule set lists it. It runs as it is or fails.
    Result<Plan> named_plan(const Problem& problem, const KernelConfig& config);
    Result<std::shared_ptr<const Executable>> executable(const Problem& problem, const Plan& plan);

private:
    struct Key {
        Problem problem;
        Strategy strategy;
        RuleSet rule_set;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const {
            return ProblemHash()(key.problem) * 31 + static_cast<std::size_t>(key.strategy) * 7 +
                   static_cast<std::size_t>(key.rule_set);
        }
    };

    Result<const Registry*> registry_for(const Problem& problem, RuleSet set);
    void drop_refused(Selection& selection) const;
    void use_tuned(const Problem& problem, Selection& selection);
    Status use_measured(const Problem& problem, const SelectOptions& options, Selection& selection);
    Status use_ranked(const Problem& problem, const SelectOptions& options, Selection& selection) const;

    Device& device_;
    Builder& builder_;
    TuningDatabase* tuning_;
    std::shared_mutex mutex_;  // guards the tables below
    std::unordered_map<Key, std::shared_ptr<const Plan>, KeyHash> plans_;
    std::unordered_map<std::string, std::shared_ptr<const Executable>> executables_;  // by kernel and problem text
    std::unordered_map<std::string, std::unique_ptr<Registry>> registries_;  // by operation, types and rule set
};

}  // namespace tilewise
