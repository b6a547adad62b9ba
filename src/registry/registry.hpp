// SPDX-License-Identifier: MIT
// The set of kernels that selection chooses from. It knows configs and problems, no device. Registries are
// independent values; every call is safe from any thread, readers work on a snapshot, and no user code runs under a
// lock. The order is that of priority (high first), then name: it does not depend on who added what when.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/rejected.hpp"
#include "base/result.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct LaunchPlan;

enum class Priority : std::uint8_t { low, normal, high };
template <>
struct EnumNames<Priority> {
    static constexpr std::string_view kind = "priority";
    static constexpr std::array<std::string_view, 3> names = {"low", "normal", "high"};
};

// A config in a registry, with what is derived from it once.
struct Kernel {
    KernelConfig config;
    std::string name;
    std::string id;
    Priority priority = Priority::normal;
    bool available = false;  // whether there is code for it: a template, or a prebuilt binary
};
Kernel make_kernel(KernelConfig config, Priority priority = Priority::normal, bool available = false);

Json kernel_to_json(const Kernel& kernel);
Json kernels_to_json(std::span<const Kernel> kernels);  // {count, kernels}

using KernelPtr = std::shared_ptr<const Kernel>;
using KernelList = std::vector<KernelPtr>;

struct RejectedKernel {
    KernelPtr kernel;
    Rejected why;
};
// Whether refusals are kept with their texts, or only counted, which takes a fraction of the time.
enum class Reasons { told, counted };
struct Candidates {
    KernelList accepted;
    std::vector<RejectedKernel> rejected;  // where reasons are told
    std::size_t rejected_count = 0;
};

class Registry {
public:
    explicit Registry(std::string name = "default");

    const std::string& name() const { return name_; }

    // A kernel that is already there is replaced only by one of higher priority, or by itself once it has code. Returns how
    // many were taken.
    std::size_t add(Kernel kernel);
    std::size_t add(std::vector<Kernel> kernels);  // all at once: readers see none or all of them
    std::size_t merge(const Registry& other);      // the same rule, with the other's priorities
    void clear();

    std::size_t size() const { return kernels()->size(); }
    // A snapshot in order; it stays valid whatever happens to the registry.
    std::shared_ptr<const KernelList> kernels() const;

    KernelPtr find(std::string_view name_or_id) const;  // null when there is none
    KernelList filter(const std::function<bool(const Kernel&)>& keep) const;

    // Which kernels may run the problem on the arch, and why each other one may not.
    Candidates candidates(const Problem& problem, const ArchSpec& arch, Reasons reasons = Reasons::told) const;
    // Shows each that may instead, with the plan that its family searched for, if it did.
    using Visit = std::function<void(const KernelPtr&, const LaunchPlan* searched)>;
    Candidates candidates(const Problem& problem, const ArchSpec& arch, Reasons reasons, const Visit& accept) const;
    // The first that may; allocates nothing.
    KernelPtr first_fit(const Problem& problem, const ArchSpec& arch) const;

    Json to_json(bool with_statistics = true) const;
    // Adds the kernels of an exported registry. Nothing is added when anything is wrong.
    Result<std::size_t> import_json(const Json& json);

private:
    std::string name_;
    mutable std::mutex mutex_;                   // guards kernels_
    std::shared_ptr<const KernelList> kernels_;  // never changed in place: readers may hold it
};

}  // namespace tilewise
