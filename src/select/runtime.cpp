// SPDX-License-Identifier: MIT
#include "select/runtime.hpp"

#include "build/build_settings.hpp"

namespace tilewise {

Result<Runtime> open_runtime(const RuntimeOptions& options, const ArchCatalog& archs) {
    Runtime runtime;
    auto device = make_device(options.device, archs, options.device_options);
    if (!device) return device.error();
    auto settings = build_settings();
    if (!settings) return settings.error();
    settings->driver_version = (*device)->driver_version();
    settings->packs.insert(settings->packs.end(), options.packs.begin(), options.packs.end());
    const std::string tuning_path = settings->cache_dir.empty() ? "" : settings->cache_dir + "/tuning.jsonl";
    runtime.records = std::make_unique<RecordStore>(record_store(*settings));
    runtime.device = std::move(*device);
    runtime.builder = std::make_unique<Builder>(std::move(*settings));
    if (!runtime.builder->pack_errors().empty()) return runtime.builder->pack_errors().front();
    runtime.tuning = std::make_unique<TuningDatabase>(tuning_path);
    runtime.dispatcher =
        std::make_unique<Dispatcher>(*runtime.device, *runtime.builder, runtime.tuning.get(), runtime.records.get());
    return runtime;
}

Result<Plan> choose_plan(Runtime& runtime, const Problem& problem, const Choice& choice) {
    if (choice.kernel) return runtime.dispatcher->named_plan(problem, *choice.kernel);
    auto plan = runtime.dispatcher->plan(problem, choice.options);
    if (!plan) return plan.error();
    return **plan;
}

}  // namespace tilewise
