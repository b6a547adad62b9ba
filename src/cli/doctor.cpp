// SPDX-License-Identifier: MIT
// tilewise doctor: what this machine has, and whether this build is whole: every embedded arch and rule set is
// expanded and checked.
#include <fmt/core.h>

#include <cstdlib>
#include <map>

#include "base/version.hpp"
#include "build/build_settings.hpp"
#include "build/builtin_pack.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"
#include "build/kernel_cache.hpp"
#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "config/rule_set.hpp"
#include "config/rules.hpp"
#include "device/cpu/host_cpu.hpp"
#include "select/record_store.hpp"

namespace tilewise::cli {
namespace {

struct Variable {
    std::string_view name, help;
};
constexpr Variable kVariables[] = {
    {"TILEWISE_CACHE_DIR",
     "where built kernels, tuning results and records are kept; else $XDG_CACHE_HOME/tilewise, ~/.cache/tilewise"},
    {"TILEWISE_CACHE_MAX", "most bytes of built kernels to keep, such as 2G"},
    {"TILEWISE_RECORDS_MAX", "most bytes of measurements to keep, such as 256M; 64M, and 0 keeps none"},
    {"TILEWISE_CXX", "the compiler for CPU kernels; else the first on PATH that is new enough"},
    {"TILEWISE_NVRTC", "the file of NVRTC, the compiler for CUDA kernels; else it is looked for"},
    {"TILEWISE_COMPILE_TIMEOUT_S", "seconds a compiler may take; 60"},
    {"TILEWISE_EPILOGUES",
     "exact: GPU kernels are compiled for each epilogue, the default; any: once for all, which are slower"},
    {"TILEWISE_PACKS", "packs of built kernels to look in, separated by ':'"},
    {"TILEWISE_ARCH_FILE", "an arch file to add, as --arch-file does"},
    {"TILEWISE_EMULATE_SEED", "the order in which threads of an emulated GPU go on, a number"},
    {"TILEWISE_LIBRARY", "the library the Python package loads"},
    {"TILEWISE_COMPAT_DTYPE", "element type of the original's functions and gpu_helper; fp16"},
    {"TILEWISE_COMPAT_LAYOUT", "their layout: rcr, and of convolutions channels_last or channels_first"},
    {"TILEWISE_COMPAT_DEVICE", "their device; auto: the first GPU, where there is none the CPU"},
    {"TILEWISE_COMPAT_RULE_SET", "the rule set the original's functions choose from"},
    {"TILEWISE_COMPAT_KERNEL", "the one kernel the original's functions use"},
    {"TILEWISE_COMPAT_WARMUP", "runs of the original's functions before the timed ones; 0"},
    {"TILEWISE_COMPAT_REPEAT", "timed runs of the original's functions; 1"},
};

struct Finding {
    std::string what, found;
    bool ok = true;
};

Finding check_arch(const ArchSpec& arch) {
    Finding finding{arch.name, "", true};
    std::size_t count = 0;
    for (const Op op : kAllOps) {
        auto configs = expand(arch, op, RuleSet::full);
        if (!configs) return {arch.name, configs.error().message, false};
        if (configs->empty()) return {arch.name, fmt::format("no kernel for {}", name_of(op)), false};
        count += configs->size();
        for (const KernelConfig& config : *configs) finding.ok = finding.ok && is_valid(config, arch);
    }
    finding.found = fmt::format("{} configs in full, {}", count, finding.ok ? "all valid" : "some not valid");
    return finding;
}

// "65 for cpu-avx512, 60 for cpu-avx2"
Finding built_in() {
    std::map<std::string, int> counts;
    for (const Manifest& manifest : builtin_pack().manifests()) ++counts[manifest.arch];
    std::string text;
    for (const auto& [arch, count] : counts) text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", count, arch);
    return {"built-in kernels", text.empty() ? "none" : text, builtin_pack_bytes().empty() == counts.empty()};
}

// "/home/me/.cache/tilewise/records.csv: 120 records, 40312 bytes of at most 67108864"
Finding records_kept(const RecordStore& store) {
    if (store.path().empty()) return {"records", "none are kept, since there is no cache", true};
    const auto size = store.size();
    if (!size) return {"records", size.error().message, false};
    return {"records",
            fmt::format("{}: {} records, {} bytes of at most {}", store.path(), size->records, size->bytes,
                        store.max_bytes()),
            true};
}

}  // namespace

Result<int> run_doctor(Context& context) {
    std::vector<Finding> findings = {{"version", std::string(version()), true}};
    auto host = host_cpu_arch(context.archs);
    findings.push_back({"host CPU", host ? (*host)->name : host.error().message, host.ok()});
    std::string features;
    for (const std::string& feature : host_cpu_features()) features += (features.empty() ? "" : " ") + feature;
    findings.push_back({"CPU features", features, true});
    for (const ArchSpec& arch : context.archs.archs()) findings.push_back(check_arch(arch));
    const auto settings = build_settings();
    findings.push_back({"cache", settings ? settings->cache_dir : settings.error().message, settings.ok()});
    if (settings) {
        if (const auto status = KernelCache(settings->cache_dir).check(); !status) {
            findings.back() = {"cache", status.error().message, false};
        }
        findings.push_back(records_kept(record_store(*settings)));
        findings.push_back(built_in());
        // Without a compiler what is cached or packed still runs, so a missing one is news, not a fault.
        for (const Backend backend : kAllBackends) {
            const std::string_view suffix = code_of(backend).suffix;
            const Compiler* compiler = compiler_of(suffix);
            if (!compiler) continue;
            const auto found = compiler->find(*settings, suffix);
            findings.push_back(
                {std::string(compiler->name),
                 found ? fmt::format("{} {} ({})", found->kind, found->version, found->path) : found.error().message,
                 true});
        }
    }
    for (const Variable& variable : kVariables) {
        const char* value = secure_getenv(std::string(variable.name).c_str());
        findings.push_back(
            {std::string(variable.name), fmt::format("{} ({})", value ? value : "not set", variable.help), true});
    }

    bool ok = true;
    Json::Array items;
    Table table({"", "check", "found"});
    for (const Finding& finding : findings) {
        ok = ok && finding.ok;
        items.push_back(Json::object({{"check", finding.what}, {"found", finding.found}, {"ok", finding.ok}}));
        table.add({finding.ok ? "ok" : "NO", finding.what, finding.found});
    }
    print(context.json ? Json::object({{"ok", ok}, {"checks", Json(std::move(items))}}).dump() : table.text());
    return ok ? 0 : static_cast<int>(ErrorCode::check_failed);
}

}  // namespace tilewise::cli
