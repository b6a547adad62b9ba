// SPDX-License-Identifier: MIT
// tilewise build: compiles the kernels of a rule set ahead, into the cache and, with --pack, into one file. Needs no device.
#include <fmt/core.h>

#include <set>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "build/code_suffix.hpp"
#include "build/pack.hpp"
#include "cli/command.hpp"
#include "cli/kernel_query.hpp"
#include "cli/terminal.hpp"
#include "config/config_name.hpp"
#include "device/cpu/thread_pool.hpp"
#include "family/family.hpp"
#include "run/executable.hpp"
#include "run/row_launch.hpp"

namespace tilewise::cli {
namespace {

// Lists what each GPU kernel needs of a multiprocessor; CPU kernels have no entry.
Json resources_json(const std::vector<PackItem>& items) {
    Json list = Json::Array();
    for (const PackItem& item : items) {
        if (!item.manifest.resources) continue;
        const KernelResources& r = *item.manifest.resources;
        list.push_back(Json::object({{"name", item.manifest.kernel},
                                     {"registers", r.registers},
                                     {"local_bytes", r.local_bytes},
                                     {"shared_bytes", r.shared_bytes}}));
    }
    return list;
}

// For people, only what may be slow: the kernels that do not fit into their registers.
std::string spilling_text(const std::vector<PackItem>& items) {
    std::string text;
    for (const PackItem& item : items) {
        const auto& resources = item.manifest.resources;
        if (!resources || resources->local_bytes == 0) continue;
        text += fmt::format("\n{} keeps {} bytes a thread in local memory ({} registers)", item.manifest.kernel,
                            resources->local_bytes, resources->registers);
    }
    return text;
}

// A command compiles this, for all its archs.
struct Work {
    std::size_t kernels = 0;
    std::size_t without_template = 0;
    std::size_t portable = 0;  // of the requests, those for later chips (PTX)
    std::vector<BuildRequest> requests;
};

std::string portable_text(const Work& work) {
    return work.portable == 0 ? "" : fmt::format(" ({} of them PTX for later GPUs)", work.portable);
}

Result<std::vector<const ArchSpec*>> chosen_archs(const Context& context) {
    std::vector<const ArchSpec*> archs;
    const auto names = context.arguments.value("arch");
    if (!names) {
        auto arch = chosen_arch(context);
        if (!arch) return arch.error();
        archs.push_back(*arch);
        return archs;
    }
    for (const std::string_view name : split(*names, ',')) {
        auto arch = context.archs.find(name);
        if (!arch) return arch.error();
        archs.push_back(*arch);
    }
    return archs;
}

// Which of the distinct sources a command takes. A source's share depends on its text alone, so that the shares of several
// machines fit together whatever else the rule set holds.
struct Shard {
    std::int64_t index = 1, count = 1;

    bool takes(std::string_view source) const {
        const std::string digest = sha256_hex(source).substr(0, 15);
        return static_cast<std::int64_t>(std::stoull(digest, nullptr, 16)) % count == index - 1;
    }
};

Result<Shard> chosen_shard(const Context& context) {
    const auto given = context.arguments.value("shard");
    if (!given) return Shard{};
    const auto parts = split(*given, '/');
    const auto index = parse_integer(parts[0]), count = parse_integer(parts.back());
    if (parts.size() != 2 || !index || !count || *index < 1 || *index > *count) {
        return usage_error(fmt::format("--shard takes I/N with I from 1 to N, such as 2/8, not '{}'", *given));
    }
    return Shard{*index, *count};
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

Status add_work(const Context& context, const ArchSpec& arch, const Shard& shard, Work& work) {
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
                if (!shard.takes(request->source)) continue;
                if (!seen.insert(fmt::format("{} {}", suffix, request->source)).second) continue;
                work.portable += suffix == code_of(arch.backend).portable ? 1U : 0U;
                work.requests.push_back(std::move(*request));
            }
        }
    }
    // Problems are padded by a kernel of no config, which the first part has.
    if (!arch.is_gpu() || !context.arguments.value("pack") || work.requests.empty() || shard.index != 1) return {};
    for (const std::string_view suffix : suffixes) {
        work.portable += suffix == code_of(arch.backend).portable ? 1U : 0U;
        work.requests.push_back(row_kernel_request(arch, suffix));
    }
    return {};
}

}  // namespace

Result<int> run_build(Context& context) {
    const auto jobs = parse_integer(context.arguments.value("jobs").value_or(fmt::format("{}", usable_cpus())));
    if (!jobs || *jobs < 1 || *jobs > 1024) return usage_error("--jobs takes a whole number from 1 to 1024");
    auto archs = chosen_archs(context);
    if (!archs) return archs.error();
    const auto shard = chosen_shard(context);
    if (!shard) return shard.error();
    Work work;
    for (const ArchSpec* arch : *archs) {
        if (auto status = add_work(context, *arch, *shard, work); !status) return status.error();
    }
    const auto& requests = work.requests;
    auto settings = build_settings();
    if (!settings) return settings.error();
    Builder builder(std::move(*settings));
    if (!builder.pack_errors().empty()) return builder.pack_errors().front();
    const auto built = builder.build_all(requests, static_cast<int>(*jobs), [](const BuildProgress& progress) {
        show_progress(progress.done, progress.total,
                      progress.failed > 0 ? fmt::format("{} failed", progress.failed) : "built");
    });

    std::size_t failed = 0, compiled = 0;
    std::vector<PackItem> items;
    for (std::size_t i = 0; i < built.size(); ++i) {
        if (!built[i]) {
            if (++failed == 1) print_error(fmt::format("tilewise: {}: {}", requests[i].name, built[i].error().message));
            continue;
        }
        compiled += built[i]->origin == KernelOrigin::built ? 1U : 0U;
        items.push_back({built[i]->manifest, built[i]->path});
    }
    // A pack that lacks kernels would only be found out where there is no compiler, so it is not written.
    const auto pack = failed == 0 ? context.arguments.value("pack") : std::nullopt;
    if (pack) {
        if (auto status = write_pack(items, *pack); !status) return status.error();
    }
    const Json json = Json::object({{"kernels", work.kernels},
                                    {"binaries", requests.size()},
                                    {"ptx", work.portable},
                                    {"compiled", compiled},
                                    {"failed", failed},
                                    {"without_template", work.without_template},
                                    {"resources", resources_json(items)},
                                    {"pack", pack ? Json(*pack) : Json()}});
    print(context.json
              ? json.dump()
              : fmt::format("{} kernels, {} binaries{}: {} compiled now, {} failed; {} kernels have no code{}{}",
                            work.kernels, requests.size(), portable_text(work), compiled, failed, work.without_template,
                            pack ? fmt::format("; pack written to {}", *pack) : "", spilling_text(items)));
    return failed == 0 ? 0 : static_cast<int>(ErrorCode::toolchain);
}

}  // namespace tilewise::cli
