// SPDX-License-Identifier: MIT
#include "family/corrector.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/rule_set.hpp"
#include "family/code_rules.hpp"
#include "family/family.hpp"

namespace tilewise {
namespace {

double apart(int a, int b) { return std::abs(std::log2(std::max(1, a)) - std::log2(std::max(1, b))); }
double apart(const Shape3& a, const Shape3& b) { return apart(a.m, b.m) + apart(a.n, b.n) + apart(a.k, b.k); }

// How much of a config another one would change: the shapes by how far they are apart, other fields by whether they differ.
double distance(const KernelConfig& a, const KernelConfig& b) {
    constexpr double kLayout = 8, kPipeline = 2, kShape = 0.5, kField = 1;
    double sum = apart(a.tile, b.tile) + kShape * (apart(a.wave, b.wave) + apart(a.warp_tile, b.warp_tile));
    if (a.layout != b.layout || a.ndim != b.ndim) sum += kLayout;
    if (a.pipeline != b.pipeline) sum += kPipeline;
    for (const ConfigField& field : config_fields()) {
        if (field.role == Role::lead || (field.is_default(a) && field.is_default(b))) continue;
        std::string left, right;
        field.print(a, left), field.print(b, right);
        if (left != right) sum += kField;
    }
    return sum;
}

// Applies the correction of the rule that says there is no code. False where it has none.
bool correct_code(KernelConfig& c, const ArchSpec& arch, std::string_view rule) {
    const Family* family = find_family(c, arch);
    if (!family) return false;
    for (const CodeRule& shared : code_rules()) {
        if (shared.name == rule && shared.correct) return shared.correct(*family, c), true;
    }
    for (const ConfigRule& own : family->rules) {
        if (own.name == rule && own.correct) return own.correct(c, arch), true;
    }
    return false;
}

}  // namespace

const std::vector<KernelConfig>& Corrector::with_code(Op op, DType a, DType b, DType out, RuleSet set) {
    const auto [place, is_new] = with_code_.try_emplace({op, a, b, out, set});
    if (!is_new) return place->second;
    if (auto configs = expand(arch_, op, {a, b}, set, out)) {
        std::erase_if(*configs, [&](const KernelConfig& c) { return !has_code(c, arch_); });
        place->second = std::move(*configs);
    }
    return place->second;
}

// The most similar config of the pipeline that was asked for, which is another algorithm than the others, and as exact; the
// default rule set comes first, since its kernels are chosen for a reason. Null where the pipeline has no code for these types.
const KernelConfig* Corrector::nearest_of_pipeline(const KernelConfig& c) {
    const PipelineSpec& spec = arch_.pipeline(c.pipeline);
    if (!spec.supported || !spec.ops[static_cast<std::size_t>(c.op)]) return nullptr;
    for (const DType out : {c.dtype_out, default_output(c.dtype)}) {
        for (const RuleSet set : {RuleSet::standard, RuleSet::full}) {
            const KernelConfig* found = nullptr;
            for (const KernelConfig& known : with_code(c.op, c.dtype, c.dtype_b, out, set)) {
                if (known.pipeline != c.pipeline || known.ndim != c.ndim || known.math != c.math) continue;
                if (!found || distance(c, known) < distance(c, *found)) found = &known;
            }
            if (found) return found;
        }
    }
    return nullptr;
}

// The most similar config of the same operation and types, where any has code; else of the first types that have.
const KernelConfig* Corrector::nearest(const KernelConfig& c) {
    const auto standard = [&](DType a, DType b, DType out) { return &with_code(c.op, a, b, out, RuleSet::standard); };
    const std::vector<KernelConfig>* list = standard(c.dtype, c.dtype_b, c.dtype_out);
    if (list->empty()) list = standard(c.dtype, c.dtype_b, default_output(c.dtype));
    for (const DTypePair& pair : pairs_of(arch_)) {
        if (list->empty()) list = standard(pair.a, pair.b, default_output(pair.a));
    }
    const auto found = std::min_element(list->begin(), list->end(), [&](const KernelConfig& a, const KernelConfig& b) {
        return distance(c, a) < distance(c, b);
    });
    return found == list->end() ? nullptr : &*found;
}

// A config that takes the place of the user's keeps the user's layout and launch, such as the parts of a split reduction, where
// it has code with them.
KernelConfig Corrector::kept_of(const KernelConfig& config, KernelConfig known) const {
    const auto keep = [&](const auto& copy) {
        KernelConfig changed = known;
        copy(changed);
        if (is_valid(changed, arch_) && has_code(changed, arch_)) known = std::move(changed);
    };
    keep([&](KernelConfig& c) { c.layout = config.layout; });
    for (const ConfigField& field : config_fields()) {
        if (field.mark != Mark::launch) continue;
        std::string value;
        field.print(config, value);
        keep([&](KernelConfig& c) { static_cast<void>(field.parse(c, value)); });
    }
    return known;
}

Correction Corrector::correct(const KernelConfig& config) {
    Correction result = correct_config(config, arch_);
    if (!has_families(arch_.backend)) return result;
    const auto correct_again = [&] {
        Correction next = correct_config(result.config, arch_);
        result.changes.insert(result.changes.end(), next.changes.begin(), next.changes.end());
        result.config = std::move(next.config);
        result.remaining = std::move(next.remaining);
    };
    Rejected why;
    constexpr int kPasses = 16;  // more than any family has corrections
    for (int pass = 0; pass < kPasses && !has_code(result.config, arch_, &why); ++pass) {
        const KernelConfig before = result.config;
        if (!correct_code(result.config, arch_, why.rule) || before == result.config) break;
        record_changes(before, result.config, why.rule, result.changes);
        correct_again();
    }
    const bool is_code = result.remaining.empty() && has_code(result.config, arch_, &why);
    if (is_code && result.config.pipeline == config.pipeline) return result;
    // The rules do not lead there, lead in a circle or to another pipeline: start over from what the user said.
    const KernelConfig* known = nearest_of_pipeline(config);
    if (!known && is_code) return result;
    if (!known) known = nearest(config);
    if (!known) return result;
    const std::string rule = is_code                    ? result.changes.front().rule
                             : result.remaining.empty() ? why.rule
                                                        : result.remaining.front().rule;
    result = {kept_of(config, *known), {}, {}};
    record_changes(config, result.config, rule, result.changes);
    return result;
}

}  // namespace tilewise
