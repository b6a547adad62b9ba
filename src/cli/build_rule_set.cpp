// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <set>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "build/code_suffix.hpp"
#include "cli/build_work.hpp"
#include "cli/kernel_query.hpp"
#include "cli/runtime.hpp"
#include "family/family.hpp"
#include "run/kernel_code.hpp"
#include "run/row_launch.hpp"

namespace tilewise::cli {
namespace {

// Which of the distinct sources a command takes. A source's share depends on its text alone, so that the shares of several
// machines fit together whatever else the rule set holds.
bool takes(const GivenShard& part, std::string_view source) {
    const std::string digest = sha256_hex(source).substr(0, 15);
    return static_cast<std::int64_t>(std::stoull(digest, nullptr, 16)) % part.count == part.index - 1;
}

// The chains that GPU kernels are compiled for beside the code for every epilogue.
Result<std::vector<Chain>> chosen_chains(const Context& context) {
    constexpr std::string_view kCommon = "none,bias,bias+relu,bias+gelu,bias+silu,add,bias+add+relu";
    std::vector<Chain> chains;
    const auto given = context.arguments.value("epilogues");
    if (!given) return chains;
    for (const std::string_view text : split(*given == "common" ? kCommon : *given, ',')) {
        auto chain = parse_chain(text);
        if (!chain) return usage_error(fmt::format("--epilogues: {}", chain.error().message));
        chains.push_back(std::move(*chain));
    }
    return chains;
}

}  // namespace

Status add_rule_set(const Context& context, const ArchSpec& arch, BuildWork& work) {
    const auto part = read_shard(context);
    if (!part) return part.error();
    auto query = read_kernel_query(context, arch);
    if (!query) return query.error();
    auto kernels = list_kernels(*query);
    if (!kernels) return kernels.error();
    work.kernels += kernels->size();
    const auto chains = chosen_chains(context);
    if (!chains) return chains.error();
    std::vector<std::optional<Chain>> codes = {std::nullopt};
    if (arch.is_gpu()) codes.insert(codes.end(), chains->begin(), chains->end());
    auto suffixes = code_suffixes(arch);
    // Only a pack goes to machines that nobody has seen yet.
    if (!context.arguments.value("pack")) suffixes.resize(1);
    // Sources: kernels that differ in launch fields, or in what their code leaves open, share one.
    std::set<std::string> seen;
    for (const Kernel& kernel : *kernels) {
        if (!kernel.available) {
            ++work.without_template;
            continue;
        }
        for (const auto& code : codes) {
            for (const std::string_view suffix : suffixes) {
                auto request = build_request(kernel.config, arch, suffix, code);
                if (!request) return request.error();
                if (!takes(*part, request->source)) continue;
                if (!seen.insert(fmt::format("{} {}", suffix, request->source)).second) continue;
                work.portable += suffix == code_of(arch.backend).portable ? 1U : 0U;
                work.requests.push_back(std::move(*request));
            }
        }
    }
    // Problems are padded by a kernel of no config, which the first part has.
    if (!arch.is_gpu() || !context.arguments.value("pack") || work.requests.empty() || part->index != 1) return {};
    for (const std::string_view suffix : suffixes) {
        work.portable += suffix == code_of(arch.backend).portable ? 1U : 0U;
        work.requests.push_back(row_kernel_request(arch, suffix));
    }
    return {};
}

}  // namespace tilewise::cli
