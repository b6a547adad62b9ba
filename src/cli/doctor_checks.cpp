// SPDX-License-Identifier: MIT
#include "cli/doctor_checks.hpp"

#include <fmt/core.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>

#include "base/text.hpp"
#include "build/builtin_pack.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"
#include "build/kernel_cache.hpp"
#include "build/try_compiler.hpp"
#include "cli/variables.hpp"
#include "config/rule_set.hpp"
#include "config/rules.hpp"
#include "device/cpu/host_cpu.hpp"
#include "device/list_gpus.hpp"
#include "learn/model_store.hpp"
#include "select/record_store.hpp"
#include "select/tuning_database.hpp"

namespace tilewise::cli {
namespace {

std::string counted(std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Finding check_arch(const ArchSpec& arch) {
    std::size_t count = 0;
    bool valid = true;
    for (const Op op : kAllOps) {
        auto configs = expand(arch, op, RuleSet::full);
        if (!configs) return {arch.name, configs.error().message, Level::fail};
        if (configs->empty()) return {arch.name, fmt::format("no kernel for {}", name_of(op)), Level::fail};
        count += configs->size();
        for (const KernelConfig& config : *configs) valid = valid && is_valid(config, arch);
    }
    return {arch.name, fmt::format("{} configs in full, {}", count, valid ? "all valid" : "some not valid"),
            valid ? Level::ok : Level::fail};
}

bool forbids_execution(const std::string& folder) {
    struct statvfs info {};
    return statvfs(folder.c_str(), &info) == 0 && (info.f_flag & ST_NOEXEC) != 0;
}

// Folders are made and a file is written, as a build does.
Finding check_cache(const BuildSettings& settings) {
    KernelCache cache(settings.cache_dir);
    if (const auto status = cache.check(); !status) return {"cache", status.error().message, Level::fail};
    const auto written = cache.private_dir();
    if (!written) {
        return {
            "cache",
            fmt::format("{}. Without it kernels are built again in every process, and no measurement is kept: name a "
                        "folder that can be written with TILEWISE_CACHE_DIR",
                        written.error().message),
            Level::fail};
    }
    if (forbids_execution(settings.cache_dir)) {
        return {"cache",
                fmt::format("{}, whose file system forbids execution (noexec): kernels are loaded from memory; name "
                            "another folder with TILEWISE_CACHE_DIR",
                            settings.cache_dir),
                Level::warn};
    }
    const CacheStats stats = cache.stats();
    return {"cache", fmt::format("{}: {}, {} bytes of at most {}", settings.cache_dir,
                                 counted(static_cast<std::size_t>(stats.entries), "kernel"), stats.bytes,
                                 settings.cache_max_bytes)};
}

// "/home/me/.cache/tilewise/records.csv: 120 records, 40312 bytes of at most 67108864"
Finding check_records(const RecordStore& store) {
    if (store.path().empty()) return {"records", "none are kept, since there is no cache", Level::warn};
    const auto size = store.size();
    if (!size) return {"records", size.error().message, Level::fail};
    return {"records", fmt::format("{}: {} records, {} bytes of at most {}", store.path(), size->records, size->bytes,
                                   store.max_bytes())};
}

Finding check_tuning(const BuildSettings& settings) {
    if (settings.cache_dir.empty()) return {"tuning results", "none are kept, since there is no cache", Level::warn};
    TuningDatabase database(tuning_path(settings));
    if (const auto refused = database.refused()) return {"tuning results", refused->message, Level::fail};
    std::string found = fmt::format("{}: {}", database.path(), counted(database.size(), "problem"));
    if (database.unreadable() == 0) return {"tuning results", found};
    return {"tuning results", fmt::format("{}, {} cannot be read", found, counted(database.unreadable(), "line")),
            Level::warn};
}

// "65 for cpu-avx512, 60 for cpu-avx2"
std::string by_arch(std::span<const Manifest> manifests) {
    std::map<std::string, int> counts;
    for (const Manifest& manifest : manifests) ++counts[manifest.arch];
    std::string text;
    for (const auto& [arch, count] : counts) text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", count, arch);
    return text.empty() ? "none" : text;
}

// The arch whose stub is compiled: the host's, or the newest that the backend's compiler knows.
const ArchSpec* arch_to_try(Backend backend, const ArchCatalog& archs) {
    if (backend == Backend::cpu) {
        const auto host = host_cpu_arch(archs);
        return host ? *host : nullptr;
    }
    const ArchSpec* last = nullptr;
    for (const ArchSpec& arch : archs.archs()) last = arch.backend == backend ? &arch : last;
    return last;
}

Finding check_compiler(const Compiler& compiler, const ArchSpec& arch, const BuildSettings& settings) {
    const std::string name(compiler.name);
    const auto found = find_toolchain(code_of(arch.backend).suffix, settings);
    // Without a compiler what is built in, cached or packed still runs, so a missing one fails nothing.
    if (!found) return {name, found.error().message, Level::warn};
    const std::string what = fmt::format("{} {} ({})", found->kind, found->version, found->path);
    const auto works = try_compiler(*found, arch, settings);
    if (works) return {name, fmt::format("{}, compiles for {}", what, arch.name)};
    return {name, fmt::format("{} does not compile: {}", what, works.error().message), Level::warn};
}

}  // namespace

std::vector<Finding> check_host(const ArchCatalog& archs) {
    const auto host = host_cpu_arch(archs);
    std::vector<std::string_view> features;
    const std::vector<std::string> all = host_cpu_features();
    features.assign(all.begin(), all.end());
    return {{"host CPU", host ? (*host)->name : host.error().message, host ? Level::ok : Level::fail},
            {"CPU features", join(features, " ")}};
}

std::vector<Finding> check_archs(const ArchCatalog& archs) {
    std::vector<Finding> findings;
    for (const ArchSpec& arch : archs.archs()) findings.push_back(check_arch(arch));
    return findings;
}

std::vector<Finding> check_storage(const BuildSettings& settings) {
    return {check_cache(settings), check_records(record_store(settings)), check_tuning(settings)};
}

std::vector<Finding> check_kernels(const BuildSettings& settings) {
    const auto built_in = builtin_pack().manifests();
    std::vector<Finding> findings = {{"built-in kernels", by_arch(built_in),
                                      builtin_pack_bytes().empty() == built_in.empty() ? Level::ok : Level::fail}};
    for (const std::string& path : settings.packs) {
        const auto pack = Pack::open(path);
        findings.push_back(pack ? Finding{"pack", fmt::format("{}: {}", path, by_arch(pack->manifests()))}
                                : Finding{"pack", pack.error().message, Level::fail});
    }
    if (settings.packs.empty()) findings.push_back({"packs", "none (TILEWISE_PACKS)"});
    return findings;
}

std::vector<Finding> check_models(const std::vector<std::string>& folders) {
    std::vector<Finding> findings;
    for (const std::string& folder : folders) {
        if (const auto status = check_model_folder(folder); !status) {
            findings.push_back({"model", status.error().message, Level::fail});
        }
    }
    if (const char* named = secure_getenv("TILEWISE_MODEL_DIR"); named && *named) {
        if (const auto status = check_model_folder(named); !status) {  // a run goes on without, and has a note
            findings.push_back({"model", status.error().message, Level::warn});
        }
    }
    std::vector<std::string> all = folders;
    const auto usual = ModelStore::usual_folders();
    all.insert(all.end(), usual.begin(), usual.end());
    for (const auto& [place, card] : list_models(all)) {
        if (!card) {
            findings.push_back({"model", fmt::format("{} is not used: {}", place, card.error().message), Level::warn});
            continue;
        }
        std::vector<std::string_view> dtypes;
        for (const DType dtype : card->dtypes) dtypes.push_back(name_of(dtype));
        findings.push_back(
            {"model", fmt::format("{}: {} in {} on {}", place, name_of(card->op), join(dtypes, ", "), card->arch)});
    }
    return findings;
}

std::vector<Finding> check_compilers(const BuildSettings& settings, const ArchCatalog& archs) {
    std::vector<Finding> findings;
    for (const Backend backend : kAllBackends) {
        const Compiler* compiler = compiler_of(code_of(backend).suffix);
        const ArchSpec* arch = arch_to_try(backend, archs);
        if (compiler && arch) findings.push_back(check_compiler(*compiler, *arch, settings));
    }
    return findings;
}

std::vector<Finding> check_gpus() {
    std::vector<Finding> findings;
    for (const Backend backend : kAllBackends) {
        if (!facts_of(backend).is_gpu) continue;
        const std::string name = fmt::format("{} GPUs", name_of(backend));
        const auto list = list_gpus(backend);
        if (!list) {
            findings.push_back({name, list.error().message + ". CPU kernels work without", Level::warn});
            continue;
        }
        findings.push_back({fmt::format("{} driver", name_of(backend)), list->driver});
        for (const std::string& gpu : list->gpus) findings.push_back({name, gpu});
        if (list->gpus.empty()) findings.push_back({name, "the driver lists none", Level::warn});
    }
    return findings;
}

std::vector<Finding> check_variables(bool unset_too) {
    std::vector<Finding> findings;
    for (const Variable& variable : variables()) {
        const char* value = secure_getenv(variable.name);
        if (!value && !unset_too) continue;
        if (const Status status = variable.check ? variable.check() : Status(); !status) {
            findings.push_back({variable.name, status.error().message, Level::fail});
            continue;
        }
        findings.push_back({variable.name, fmt::format("{} ({})", value ? value : "not set", variable.help)});
    }
    std::vector<std::string_view> known;
    for (const Variable& variable : variables()) known.emplace_back(variable.name);
    for (const std::string& name : unknown_variables()) {
        const auto meant = nearest(name, known);
        findings.push_back(
            {name,
             fmt::format("nothing reads this variable; {}", meant ? fmt::format("did you mean {}?", *meant)
                                                                  : "tilewise doctor --all lists those that are read"),
             Level::warn});
    }
    return findings;
}

}  // namespace tilewise::cli
