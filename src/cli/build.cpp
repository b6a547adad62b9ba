// SPDX-License-Identifier: MIT
// tilewise build: compiles the kernels of a rule set, or those that a list of problems needs, ahead: into the cache and, with --pack,
// into one file. Needs no device.
#include <fmt/core.h>

#include "base/text.hpp"
#include "build/pack.hpp"
#include "cli/build_work.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "device/cpu/thread_pool.hpp"

namespace tilewise::cli {
namespace {

// Lists what each GPU kernel needs of a multiprocessor; CPU kernels have no entry.
Json resources_json(const std::vector<PackItem>& items) {
    Json list = Json::Array();
    for (const PackItem& item : items) {
        if (!item.manifest.resources) continue;
        const KernelResources& r = *item.manifest.resources;
        list.push_back(Json::object({{"name", item.manifest.kernel},
                                     {"path", item.path},
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

std::string portable_text(const BuildWork& work) {
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

Status refuse_together(const Context& context, std::string_view option,
                       std::initializer_list<std::string_view> others) {
    for (const std::string_view other : others) {
        if (context.arguments.has(other)) {
            return usage_error(fmt::format("--{} goes {} --problems: leave one of them out", other, option));
        }
    }
    return {};
}

Result<BuildWork> find_work(const Context& context, std::span<const ArchSpec* const> archs,
                            const BuildSettings& settings) {
    BuildWork work;
    if (!context.arguments.has("problems")) {
        if (auto status = refuse_together(context, "only with", {"top", "most", "kernels", "seed"}); !status)
            return status.error();
        for (const ArchSpec* arch : archs) {
            if (auto status = add_rule_set(context, *arch, work); !status) return status.error();
        }
        return work;
    }
    if (auto status = refuse_together(context, "not with", {"op", "dtype", "epilogues", "shard"}); !status) {
        return status.error();
    }
    if (context.arguments.has("top") && context.arguments.has("kernels")) {
        return usage_error(
            "--top names the best kernels, --kernels those that a sweep measures: leave one of them out");
    }
    const auto problems = read_problems(context);
    if (!problems) return problems.error();
    const auto tuned = TuningDatabase(tuning_path(settings)).records();
    for (const ArchSpec* arch : archs) {
        if (auto status = add_problems(context, *arch, *problems, tuned, work); !status) return status.error();
    }
    return work;
}

Error nothing_to_build(const Context& context, const BuildWork& work) {
    if (work.kernels > 0) {
        return unsupported_error(
            fmt::format("there is nothing to build: none of {} kernels has code for its arch yet", work.kernels));
    }
    return unsupported_error(context.arguments.has("problems")
                                 ? "there is nothing to build: no kernel may run any of the problems (tilewise select "
                                   "--explain says why)"
                                 : "there is nothing to build: the rule set has no such kernel (tilewise kernels lists "
                                   "those there are)");
}

}  // namespace

Result<int> run_build(Context& context) {
    const std::string asked = context.arguments.value("jobs").value_or(fmt::format("{}", usable_cpus()));
    const auto jobs = parse_integer(asked);
    if (!jobs || *jobs < 1 || *jobs > 1024) {
        return usage_error(fmt::format("--jobs takes a whole number from 1 to 1024, not '{}'", asked));
    }
    auto archs = chosen_archs(context);
    if (!archs) return archs.error();
    auto settings = build_settings();
    if (!settings) return settings.error();
    const auto work = find_work(context, *archs, *settings);
    if (!work) return work.error();
    const auto& requests = work->requests;
    if (requests.empty() && !context.arguments.has("shard")) return nothing_to_build(context, *work);
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
        if (auto status = write_pack(items, *pack, {work->tuning, static_cast<int>(*jobs)}); !status)
            return status.error();
    }
    const Json json = Json::object({{"kernels", work->kernels},
                                    {"binaries", requests.size()},
                                    {"ptx", work->portable},
                                    {"compiled", compiled},
                                    {"failed", failed},
                                    {"without_template", work->without_template},
                                    {"problems", work->problems},
                                    {"resources", resources_json(items)},
                                    {"pack", pack ? Json(*pack) : Json()}});
    print(context.json
              ? json.dump()
              : fmt::format("{} kernels, {} binaries{}: {} compiled now, {} failed; {} kernels have no code{}{}",
                            work->kernels, requests.size(), portable_text(*work), compiled, failed,
                            work->without_template, pack ? fmt::format("; pack written to {}", *pack) : "",
                            spilling_text(items)));
    return failed == 0 ? 0 : static_cast<int>(ErrorCode::toolchain);
}

}  // namespace tilewise::cli
