// SPDX-License-Identifier: MIT
// tilewise cache: what is kept of built kernels: list, count, verify, prune, clear. Records of measurements are counted as well;
// like tuning results they stay when kernels go.
#include <fmt/core.h>

#include "base/text.hpp"
#include "build/build_settings.hpp"
#include "build/kernel_cache.hpp"
#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "select/record_store.hpp"

namespace tilewise::cli {
namespace {

Result<int> list(const KernelCache& cache, bool json) {
    Table table({"digest", "bytes", "arch", "kernel"});
    Json::Array items;
    for (const CacheEntry& entry : cache.ls()) {
        table.add({entry.manifest.digest.substr(0, 16), fmt::format("{}", entry.bytes), entry.manifest.arch,
                   entry.manifest.kernel});
        items.push_back(Json::object({{"digest", entry.manifest.digest},
                                      {"bytes", entry.bytes},
                                      {"arch", entry.manifest.arch},
                                      {"kernel", entry.manifest.kernel},
                                      {"path", entry.path}}));
    }
    print(json ? Json::object({{"root", cache.root()}, {"entries", Json(std::move(items))}}).dump() : table.text());
    return 0;
}

Result<int> verify(const KernelCache& cache, bool json) {
    const auto bad = cache.verify();
    Table table({"digest", "reason"});
    Json::Array items;
    for (const BadEntry& entry : bad) {
        table.add({entry.digest, entry.reason});
        items.push_back(Json::object({{"digest", entry.digest}, {"reason", entry.reason}}));
    }
    if (json) {
        print(Json::object({{"ok", bad.empty()}, {"bad", Json(std::move(items))}}).dump());
    } else {
        print(bad.empty() ? "every entry is whole" : table.text());
    }
    return bad.empty() ? 0 : static_cast<int>(ErrorCode::check_failed);
}

Result<int> removed(const Result<std::int64_t>& count, bool json) {
    if (!count) return count.error();
    print(json ? Json::object({{"removed", *count}}).dump() : fmt::format("{} entries removed", *count));
    return 0;
}

Result<int> show_stats(const KernelCache& cache, const BuildSettings& settings, bool json) {
    const CacheStats stats = cache.stats();
    const RecordStore records = record_store(settings);
    const auto kept = records.size();
    if (!kept) return kept.error();
    if (json) {
        const Json of_records = Json::object({{"path", records.path()},
                                              {"records", kept->records},
                                              {"bytes", kept->bytes},
                                              {"max_bytes", records.max_bytes()}});
        print(Json::object({{"root", cache.root()},
                            {"entries", stats.entries},
                            {"bytes", stats.bytes},
                            {"failed", stats.failed},
                            {"max_bytes", settings.cache_max_bytes},
                            {"records", of_records}})
                  .dump());
        return 0;
    }
    print(fmt::format("{}: {} kernels, {} bytes of at most {}, {} failed builds kept", cache.root(), stats.entries,
                      stats.bytes, settings.cache_max_bytes, stats.failed));
    print(fmt::format("{}: {} records, {} bytes of at most {}", records.path(), kept->records, kept->bytes,
                      records.max_bytes()));
    return 0;
}

}  // namespace

Result<int> run_cache(Context& context) {
    auto settings = build_settings();
    if (!settings) return settings.error();
    if (settings->cache_dir.empty()) {
        return usage_error("there is no cache: none of TILEWISE_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    }
    KernelCache cache(settings->cache_dir);
    if (auto status = cache.check(); !status) return status.error();
    const std::string& verb = context.arguments.operands().front();
    if (verb == "ls") return list(cache, context.json);
    if (verb == "verify") return verify(cache, context.json);
    if (verb == "clear") return removed(cache.clear(), context.json);
    if (verb == "prune") {
        const auto limit = context.arguments.value("max");
        const auto bytes = limit ? parse_bytes(*limit) : std::optional(settings->cache_max_bytes);
        if (!bytes) return usage_error(fmt::format("--max takes a byte count such as 512M, not '{}'", *limit));
        return removed(cache.prune(*bytes), context.json);
    }
    if (verb == "stats") return show_stats(cache, *settings, context.json);
    return unknown_choice("cache command", verb, cache_choices());
}

}  // namespace tilewise::cli
