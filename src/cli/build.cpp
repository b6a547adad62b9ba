// SPDX-License-Identifier: MIT
// tilewise build: compiles the kernels of a rule set ahead, into the cache and, with --pack, into one file. Needs no device.
#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "build/pack.hpp"
#include "cli/command.hpp"
#include "cli/kernel_query.hpp"
#include "cli/terminal.hpp"
#include "codegen/kernel_source.hpp"
#include "config/config_name.hpp"
#include "device/cpu/thread_pool.hpp"
#include "run/executable.hpp"

namespace tilewise::cli {
Result<int> run_build(Context& context) {
    auto query = read_kernel_query(context);
    if (!query) return query.error();
    const auto jobs = parse_integer(context.arguments.value("jobs").value_or(fmt::format("{}", usable_cpus())));
    if (!jobs || *jobs < 1 || *jobs > 1024) return usage_error("--jobs takes a whole number from 1 to 1024");
    auto kernels = list_kernels(*query);
    if (!kernels) return kernels.error();
    std::vector<BuildRequest> requests;
    std::vector<std::string> seen;  // kernels that differ in launch fields share a binary
    std::size_t without_template = 0;
    for (const Kernel& kernel : *kernels) {
        if (!kernel.available) {
            ++without_template;
            continue;
        }
        auto request = build_request(kernel.config, *query->arch);
        if (!request) return request.error();
        const std::string code = code_id(kernel.config);
        if (std::find(seen.begin(), seen.end(), code) != seen.end()) continue;
        seen.push_back(code);
        requests.push_back(std::move(*request));
    }
    auto settings = build_settings();
    if (!settings) return settings.error();
    Builder builder(std::move(*settings));
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
        compiled += built[i]->origin == KernelOrigin::built ? 1 : 0;
        items.push_back({built[i]->manifest, built[i]->path});
    }
    // A pack that lacks kernels would only be found out where there is no compiler, so it is not written.
    const auto pack = failed == 0 ? context.arguments.value("pack") : std::nullopt;
    if (pack) {
        if (auto status = write_pack(items, *pack); !status) return status.error();
    }
    const Json json = Json::object({{"kernels", kernels->size()},
                                    {"binaries", requests.size()},
                                    {"compiled", compiled},
                                    {"failed", failed},
                                    {"without_template", without_template},
                                    {"pack", pack ? Json(*pack) : Json()}});
    print(context.json
              ? json.dump()
              : fmt::format("{} kernels, {} binaries: {} compiled now, {} failed; {} kernels have no template yet{}",
                            kernels->size(), requests.size(), compiled, failed, without_template,
                            pack ? fmt::format("; pack written to {}", *pack) : ""));
    return failed == 0 ? 0 : static_cast<int>(ErrorCode::toolchain);
}

}  // namespace tilewise::cli
