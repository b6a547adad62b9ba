// SPDX-License-Identifier: MIT
// The whole way from a problem to something that can be launched: candidates, choice, build, load. Plans and executables of so many
// problems are kept, so that one seen before costs a look-up that takes no lock. One that goes stays with who holds it, and loaded
// GPU code with its device: a graph may have captured it. Safe from any thread and after a fork.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/growing_table.hpp"
#include "base/result.hpp"
#include "base/rotating_table.hpp"
#include "build/builder.hpp"
#include "config/rule_set.hpp"
#include "device/device.hpp"
#include "learn/model_store.hpp"
#include "problem/problem_hash.hpp"
#include "run/executable.hpp"
#include "select/background_builds.hpp"
#include "select/choice_table.hpp"
#include "select/record_store.hpp"
#include "select/select.hpp"
#include "select/select_options.hpp"
#include "select/tuning_database.hpp"

namespace tilewise {

class Dispatcher {
public:
    // The database and the store may be null; then no winner is remembered and no measurement recorded.
    Dispatcher(Device& device, Builder& builder, TuningDatabase* tuning, RecordStore* records = nullptr,
               std::size_t most_kept = kPlansKept)
        : device_(device),
          builder_(builder),
          tuning_(tuning),
          records_(records),
          background_(device, builder.settings()),
          plans_(most_kept),
          executables_(most_kept) {}

    static constexpr std::size_t kPlansKept = 4096;

    std::size_t most_kept() const { return plans_.most(); }
    Device& device() { return device_; }
    Builder& builder() { return builder_; }

    // Everything about the choice, for showing.
    Result<Selection> select(const Problem& problem, const SelectOptions& options = {},
                             Reasons reasons = Reasons::told);
    // The plan alone, kept: a problem asked for again costs one look-up.
    Result<std::shared_ptr<const Plan>> plan(const Problem& problem, const SelectOptions& options = {});
    // A kernel asked for by config, whether or not a rule set lists it. It runs, with the problem padded
    // if it must be, or fails.
    Result<Plan> named_plan(const Problem& problem, const KernelConfig& config);
    Result<std::shared_ptr<const Executable>> executable(const Problem& problem, const Plan& plan);
    // The same without waiting for a compiler, where a built-in CPU kernel can serve until the plan's own is compiled behind it: the
    // executable has a note then.
    Result<std::shared_ptr<const Executable>> executable_now(const Problem& problem, const Plan& plan);

    // Learned models, which must outlive this; before any problem is asked for.
    void use_models(ModelStore& models) { models_ = &models; }

    // After tuning records, packs or models were added: what is asked for from now on is chosen anew.
    void forget_plans() { ++generation_; }

private:
    // A table is looked up by this: the problem, in the table's own copy or in the caller's, and what goes with it.
    template <class P>
    struct PlanKey {
        P problem;
        Strategy strategy;
        RuleSet rule_set;
        std::uint32_t generation;
        template <class Q>
        bool operator==(const PlanKey<Q>& other) const {
            return generation == other.generation && strategy == other.strategy && rule_set == other.rule_set &&
                   problem == other.problem;
        }
    };
    template <class P>
    struct ExecutableKey {
        P problem;
        KernelPtr kernel;  // by name: another registry may have the same one
        template <class Q>
        bool operator==(const ExecutableKey<Q>& other) const {
            return (kernel == other.kernel || kernel->name == other.kernel->name) && problem == other.problem;
        }
    };
    template <class S>
    struct KernelKey {
        S name;
        std::uint32_t generation;
        template <class T>
        bool operator==(const KernelKey<T>& other) const {
            return generation == other.generation && name == other.name;
        }
    };
    struct KeyHash {
        template <class S>
        std::size_t operator()(const KernelKey<S>& key) const {
            return std::hash<std::string>()(key.name) + key.generation * 97;
        }
        template <class P>
        std::size_t operator()(const PlanKey<P>& key) const {
            return ProblemHash()(key.problem) * 31 + static_cast<std::size_t>(key.strategy) * 7 +
                   static_cast<std::size_t>(key.rule_set) + key.generation * 97;
        }
        template <class P>
        std::size_t operator()(const ExecutableKey<P>& key) const {
            return ProblemHash()(key.problem) * 31 + std::hash<std::string>()(key.kernel->name);
        }
        std::size_t operator()(const std::string& key) const { return std::hash<std::string>()(key); }
    };

    // The kernels of a rule set for an operation and its types, and the table that plain choices read.
    struct Listed {
        std::unique_ptr<Registry> registry;
        std::unique_ptr<ChoiceTable> table;
    };
    Result<const Listed*> listed_for(const Problem& problem, RuleSet set);
    std::optional<Selection> select_first(const Problem& problem, const SelectOptions& options);
    bool has_record(const Problem& problem) const;
    Result<Selection> select_told(const Problem& problem, const SelectOptions& options);
    bool must_not_measure(const SelectOptions& options) const;
    static void drop_padded(Selection& selection);
    void drop_refused(Selection& selection) const;
    bool lacks_compiler(const Problem& problem, const Kernel& kernel);
    bool drop_unobtainable(const Problem& problem, Selection& selection);
    std::shared_ptr<const Executable> find_executable(const Problem& problem, const Plan& plan);
    std::optional<Executable> serve_meanwhile(const Problem& problem, const Plan& plan);
    Status choose_obtainable(const Problem& problem, const SelectOptions& options, Selection& selection);

    Device& device_;
    Builder& builder_;
    TuningDatabase* tuning_;
    RecordStore* records_;
    ModelStore* models_ = nullptr;
    std::atomic<std::uint32_t> generation_{0};
    std::atomic<bool> has_compiler_{false};  // for the device's code, once one was found
    BackgroundBuilds background_;
    // Added to under fork_safe_mutex, read without.
    RotatingTable<PlanKey<Problem>, std::shared_ptr<const Plan>, KeyHash> plans_;
    RotatingTable<ExecutableKey<Problem>, std::shared_ptr<const Executable>, KeyHash> executables_;
    GrowingTable<KernelKey<std::string>, bool, KeyHash> lacks_compiler_;  // by kernel and chain, as far as it was asked
    GrowingTable<std::string, Listed, KeyHash> listed_;                   // by operation, types and rule set
};

}  // namespace tilewise
