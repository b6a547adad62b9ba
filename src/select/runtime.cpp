// SPDX-License-Identifier: MIT
#include "select/runtime.hpp"

#include <fmt/core.h>

#include <cstdlib>

#include "base/text.hpp"
#include "build/build_settings.hpp"

namespace tilewise {

Result<std::size_t> plan_cache_limit() {
    const char* text = secure_getenv("TILEWISE_PLAN_CACHE");
    if (!text || !*text) return Dispatcher::kPlansKept;
    constexpr std::int64_t kLeast = 2, kMost = 1 << 24;
    const auto count = parse_integer(text);
    if (!count || *count < kLeast || *count > kMost) {
        return usage_error(
            fmt::format("TILEWISE_PLAN_CACHE is '{}'; need a number of problems from {} to {}", text, kLeast, kMost));
    }
    return static_cast<std::size_t>(*count);
}

Result<Runtime> open_runtime(const RuntimeOptions& options, const ArchCatalog& archs) {
    Runtime runtime;
    const auto most_kept = plan_cache_limit();
    if (!most_kept) return most_kept.error();
    auto device = make_device(options.device, archs, options.device_options);
    if (!device) return device.error();
    auto settings = build_settings();
    if (!settings) return settings.error();
    settings->driver_version = (*device)->driver_version();
    settings->packs.insert(settings->packs.end(), options.packs.begin(), options.packs.end());
    const std::string tuning = tuning_path(*settings);
    runtime.records = std::make_unique<RecordStore>(record_store(*settings));
    runtime.device = std::move(*device);
    runtime.builder = std::make_unique<Builder>(std::move(*settings));
    if (!runtime.builder->pack_errors().empty()) return runtime.builder->pack_errors().front();
    runtime.tuning = std::make_unique<TuningDatabase>(tuning);
    if (auto status = take_tuning_of_packs(runtime); !status) return status.error();
    runtime.dispatcher = std::make_unique<Dispatcher>(*runtime.device, *runtime.builder, runtime.tuning.get(),
                                                      runtime.records.get(), *most_kept);
    std::vector<std::string> folders = options.model_dirs;
    for (std::string& folder : ModelStore::usual_folders()) folders.push_back(std::move(folder));
    runtime.models = std::make_unique<ModelStore>(std::move(folders));
    runtime.dispatcher->use_models(*runtime.models);
    return runtime;
}

Status take_tuning_of_packs(Runtime& runtime) {
    for (const std::string& lines : runtime.builder->tuning()) {
        if (auto status = runtime.tuning->add_missing(lines, "the records of a pack"); !status) return status;
    }
    return {};
}

Result<Plan> choose_plan(Runtime& runtime, const Problem& problem, const Choice& choice) {
    if (choice.kernel) return runtime.dispatcher->named_plan(problem, *choice.kernel);
    auto plan = runtime.dispatcher->plan(problem, choice.options);
    if (!plan) return plan.error();
    return **plan;
}

}  // namespace tilewise
