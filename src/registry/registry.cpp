// SPDX-License-Identifier: MIT
#include "registry/registry.hpp"

#include <algorithm>
#include <unordered_map>

#include "config/config_name.hpp"
#include "family/may_run.hpp"

namespace tilewise {
namespace {

bool comes_before(const KernelPtr& a, const KernelPtr& b) {
    if (a->priority != b->priority) return a->priority > b->priority;
    return a->name < b->name;
}

// A kernel gives way to one of higher priority, and one without code to the same one with code.
bool replaces(const Kernel& next, const Kernel& old) {
    if (next.priority != old.priority) return next.priority > old.priority;
    return next.available && !old.available;
}

}  // namespace

Kernel make_kernel(KernelConfig config, Priority priority, bool available) {
    Kernel kernel;
    kernel.name = kernel_name(config);
    kernel.id = kernel_id(kernel.name);
    kernel.config = std::move(config);
    kernel.priority = priority;
    kernel.available = available;
    return kernel;
}

Registry::Registry(std::string name) : name_(std::move(name)), kernels_(std::make_shared<const KernelList>()) {}

std::shared_ptr<const KernelList> Registry::kernels() const {
    const std::lock_guard lock(mutex_);
    return kernels_;
}

std::size_t Registry::add(Kernel kernel) {
    std::vector<Kernel> one;
    one.push_back(std::move(kernel));
    return add(std::move(one));
}

std::size_t Registry::add(std::vector<Kernel> kernels) {
    const std::lock_guard lock(mutex_);
    auto list = std::make_shared<KernelList>(*kernels_);
    std::unordered_map<std::string_view, std::size_t> by_name;
    by_name.reserve(list->size() + kernels.size());
    for (std::size_t i = 0; i < list->size(); ++i) by_name.emplace((*list)[i]->name, i);
    std::size_t taken = 0;
    for (Kernel& kernel : kernels) {
        auto added = std::make_shared<const Kernel>(std::move(kernel));
        const auto [at, is_new] = by_name.emplace(added->name, list->size());
        if (is_new) {
            list->push_back(std::move(added));
        } else if (replaces(*added, *(*list)[at->second])) {
            // The map's key is a view of the name of the kernel that goes, so it goes first.
            const std::size_t index = at->second;
            by_name.erase(at);
            by_name.emplace(added->name, index);
            (*list)[index] = std::move(added);
        } else {
            continue;
        }
        ++taken;
    }
    std::sort(list->begin(), list->end(), comes_before);
    kernels_ = std::move(list);
    return taken;
}

std::size_t Registry::merge(const Registry& other) {
    std::vector<Kernel> copies;
    const auto list = other.kernels();  // held: the loop must not outlive the snapshot
    for (const KernelPtr& kernel : *list) copies.push_back(*kernel);
    return add(std::move(copies));
}

void Registry::clear() {
    const std::lock_guard lock(mutex_);
    kernels_ = std::make_shared<const KernelList>();
}

KernelPtr Registry::find(std::string_view name_or_id) const {
    const auto list = kernels();
    for (const KernelPtr& kernel : *list) {
        if (kernel->name == name_or_id || kernel->id == name_or_id) return kernel;
    }
    return nullptr;
}

KernelList Registry::filter(const std::function<bool(const Kernel&)>& keep) const {
    const auto list = kernels();
    KernelList kept;
    for (const KernelPtr& kernel : *list) {
        if (keep(*kernel)) kept.push_back(kernel);
    }
    return kept;
}

Candidates Registry::candidates(const Problem& problem, const ArchSpec& arch, Reasons reasons) const {
    KernelList accepted;
    Candidates result = candidates(problem, arch, reasons,
                                   [&](const KernelPtr& kernel, const LaunchPlan*) { accepted.push_back(kernel); });
    result.accepted = std::move(accepted);
    return result;
}

Candidates Registry::candidates(const Problem& problem, const ArchSpec& arch, Reasons reasons,
                                const Visit& accept) const {
    const auto list = kernels();
    Candidates result;
    const ProblemView view(problem);
    std::optional<LaunchPlan> searched;
    for (const KernelPtr& kernel : *list) {
        Rejected why;
        Rejected* const out = reasons == Reasons::told ? &why : nullptr;
        const bool elsewhere = kernel->config.arch != arch.name;
        if (!elsewhere && may_run(view, kernel->config, arch, out, &searched)) {
            accept(kernel, searched ? &*searched : nullptr);
            continue;
        }
        ++result.rejected_count;
        if (!out) continue;
        if (elsewhere) why = {"fit_arch", kernel->config.arch, arch.name};
        result.rejected.push_back({kernel, std::move(why)});
    }
    return result;
}

KernelPtr Registry::first_fit(const Problem& problem, const ArchSpec& arch) const {
    const auto list = kernels();
    const ProblemView view(problem);
    for (const KernelPtr& kernel : *list) {
        if (kernel->config.arch == arch.name && may_run(view, kernel->config, arch)) return kernel;
    }
    return nullptr;
}

}  // namespace tilewise
