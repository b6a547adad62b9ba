// SPDX-License-Identifier: MIT
// Everything that running kernels on one device takes: the device, the builder, the tuning database, the records, the learned models and
// a dispatcher over them, with the settings of the environment. The command line and the C interface both start here.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "device/make_device.hpp"
#include "learn/model_store.hpp"
#include "select/dispatcher.hpp"

namespace tilewise {

struct RuntimeOptions {
    std::string device = "cpu";
    DeviceOptions device_options;
    std::vector<std::string> packs;       // besides those of the environment
    std::vector<std::string> model_dirs;  // asked for learned models before those of the environment
};

// How many problems a dispatcher keeps ready: TILEWISE_PLAN_CACHE, which must make sense.
Result<std::size_t> plan_cache_limit();

struct Runtime {
    std::unique_ptr<Device> device;
    std::unique_ptr<Builder> builder;
    std::unique_ptr<TuningDatabase> tuning;
    std::unique_ptr<RecordStore> records;
    std::unique_ptr<ModelStore> models;
    std::unique_ptr<Dispatcher> dispatcher;
};
// The catalogue must outlive the runtime. A pack that cannot be read is an error.
Result<Runtime> open_runtime(const RuntimeOptions& options, const ArchCatalog& archs);

// Adds the tuning records that the builder's packs carry to the database; those of its own count more.
Status take_tuning_of_packs(Runtime& runtime);

// Which kernel to take: the one named, else by the options.
struct Choice {
    std::optional<KernelConfig> kernel;
    SelectOptions options;
};
Result<Plan> choose_plan(Runtime& runtime, const Problem& problem, const Choice& choice);

}  // namespace tilewise
