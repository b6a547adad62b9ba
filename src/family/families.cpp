// SPDX-License-Identifier: MIT
#include "family/families.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "config/config_name.hpp"
#include "family/code_rules.hpp"
#include "family/gpu/gpu_source.hpp"

namespace tilewise {
namespace {

const Family* const kFamilies[] = {
    &kBlockedGemm,        &kBlockedConv,
    &kDirectConv,         &kMmaGemm,
    &kSimtGemm,           &kFp64Gemm,
    &kWgmmaGemm,          &kGemv,
    &kGemvRows,           &kMmaConv,
    &kSimtConv,           &kIm2colConv,
    &kCol2imConv,         &kPatchConv,
    &kPatchBoxConv,       &kFirstLayerConv,
    &kResidentFilterConv, &kPatchWgrad,
    &kShiftedWgrad,       &kDepthwiseAny,
    &kDepthwiseStrips,    &kDepthwiseChannelSlice,
    &kDepthwiseToeplitz,  &kDepthwiseBlockDiagonal,
    &kMfmaGemm,           &kMfmaConv,
    &kHipDepthwiseAny,    &kHipDepthwiseStrips,
};

}  // namespace

std::span<const Family* const> families() { return kFamilies; }

bool has_families(Backend backend) {
    return std::ranges::find(kFamilies, backend, &Family::backend) != std::end(kFamilies);
}

bool has_families(Backend backend, Op op) {
    return std::ranges::any_of(kFamilies, [&](const Family* family) {
        return family->backend == backend && std::ranges::find(family->ops, op) != family->ops.end();
    });
}

const Family* find_family(const KernelConfig& config, const ArchSpec& arch) {
    const FamilyId id = family_of(config);
    for (const Family* family : kFamilies) {
        if (family->id == id && family->backend == arch.backend) return family;
    }
    return nullptr;
}

LaunchSpec launch_spec(const KernelConfig& c, const ArchSpec& arch) {
    const Family* family = find_family(c, arch);
    return family ? family->spec(c, arch) : block_spec(c, arch);
}

namespace {

std::optional<LaunchPlan> searched_plan(const WorkProblem& problem, const KernelConfig& c, const Family* family) {
    if (!family || !family->searches) return std::nullopt;
    return family->plan(problem.view.problem, c, problem.arch, problem.threads, nullptr);
}

}  // namespace

double predicted_us(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan* searched) {
    const Family* family = find_family(c, problem.arch);
    if (!family || (family->searches && !searched)) return std::numeric_limits<double>::infinity();
    return family->work.us(problem, c, searched);
}

double predicted_us(const WorkProblem& problem, const KernelConfig& c) {
    const auto plan = searched_plan(problem, c, find_family(c, problem.arch));
    return predicted_us(problem, c, plan ? &*plan : nullptr);
}

WorkParts work_parts_of(const WorkProblem& problem, const KernelConfig& c) {
    WorkParts parts{};
    const Family* family = find_family(c, problem.arch);
    const auto plan = searched_plan(problem, c, family);
    if (!family || (family->searches && !plan)) return parts;
    const NotedParts noted(parts);
    family->work.parts(problem, c, plan ? &*plan : nullptr);
    return parts;
}

Work work_of(const WorkProblem& problem, const KernelConfig& c) {
    Work work;
    const Family* family = find_family(c, problem.arch);
    const auto plan = searched_plan(problem, c, family);
    if (!family || (family->searches && !plan)) return work;
    const WorkRecording recording(work);
    family->work.term(problem, c, plan ? &*plan : nullptr).finish();
    return work;
}

bool has_code(const KernelConfig& c, const ArchSpec& arch, Rejected* why) {
    const Family* family = find_family(c, arch);
    if (!family) {
        if (why)
            *why = {"code_family", fmt::format("{} on {}", name_of(family_of(c)), name_of(arch.backend)),
                    "a family that it has"};
        return false;
    }
    for (const CodeRule& rule : code_rules()) {
        if (!rule.broken(*family, c, why)) continue;
        if (why) why->rule = rule.name;
        return false;
    }
    for (const ConfigRule& rule : family->rules) {
        if (!rule.broken(c, arch, why)) continue;
        if (why) why->rule = rule.name;
        return false;
    }
    return true;
}

Result<KernelSource> generate_source(const KernelConfig& c, const ArchSpec& arch, const std::optional<Chain>& chain) {
    Rejected why;
    if (c.arch != arch.name) {
        return unsupported_error(fmt::format("{} is for {}, not for {}", kernel_name(c), c.arch, arch.name));
    }
    if (!has_code(c, arch, &why)) {
        return unsupported_error(fmt::format("there is no code for {}: rule {}: have {}; need {}", kernel_name(c),
                                             why.rule, why.have, why.need));
    }
    const Family* family = find_family(c, arch);
    const std::string source = family->source(c, arch);
    return KernelSource{family->is_gpu() ? chain_line(chain) + source : source, kernel_features(c, arch)};
}

std::vector<std::string> kernel_features(const KernelConfig& c, const ArchSpec& arch) {
    std::vector<std::string> features = arch.cpu_features;
    for (const DepthFeature& need : arch.depth_features) {
        if (need.dtype == c.dtype && need.depth == c.warp_tile.k) features.push_back(need.feature);
    }
    return features;
}

}  // namespace tilewise
