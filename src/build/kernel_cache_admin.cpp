// SPDX-License-Identifier: MIT
// Looking after the cache: listing, checking, limiting its size, emptying it.
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "build/build_request.hpp"
#include "build/kernel_cache.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;

// The names in a folder that are of the layout; links to folders elsewhere are not.
std::vector<std::string> names(const std::string& folder, bool (*fits)(std::string_view)) {
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        std::string name = at->path().filename();
        std::error_code unknown;
        if (fits(name) && at->symlink_status(unknown).type() == fs::file_type::directory)
            found.push_back(std::move(name));
    }
    std::sort(found.begin(), found.end());
    return found;
}

bool is_shard(std::string_view name) { return is_digest(std::string(62, '0') + std::string(name)); }

std::int64_t tree_bytes(const std::string& folder) {
    std::int64_t bytes = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        struct stat info {};
        if (lstat(at->path().c_str(), &info) == 0 && S_ISREG(info.st_mode)) bytes += info.st_size;
    }
    return bytes;
}

struct Removable {
    std::int64_t used;
    std::string digest;
    std::string path;
    std::int64_t bytes;
};

}  // namespace

std::vector<std::string> KernelCache::digests() const {
    std::vector<std::string> found;
    if (root_.empty()) return found;
    for (const std::string& shard : names(root_ + "/v1", is_shard)) {
        for (std::string& digest : names(fmt::format("{}/v1/{}", root_, shard), is_digest)) {
            if (digest.starts_with(shard)) found.push_back(std::move(digest));
        }
    }
    return found;
}

std::vector<std::string> KernelCache::failed() const {
    return root_.empty() ? std::vector<std::string>() : names(root_ + "/failed", is_digest);
}

std::vector<CacheEntry> KernelCache::ls() const {
    std::vector<CacheEntry> entries;
    for (const std::string& digest : digests()) {
        if (auto entry = read_entry(entry_dir(digest), digest, false)) entries.push_back(std::move(*entry));
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const CacheEntry& a, const CacheEntry& b) { return a.used > b.used; });
    return entries;
}

CacheStats KernelCache::stats() const {
    CacheStats stats;
    for (const std::string& digest : digests()) {
        ++stats.entries;
        stats.bytes += tree_bytes(entry_dir(digest));
    }
    for (const std::string& digest : failed()) {
        ++stats.failed;
        stats.bytes += tree_bytes(fmt::format("{}/failed/{}", root_, digest));
    }
    return stats;
}

std::vector<BadEntry> KernelCache::verify() const {
    std::vector<BadEntry> bad;
    for (const std::string& digest : digests()) {
        const auto entry = read_entry(entry_dir(digest), digest, true);
        if (!entry) bad.push_back({digest, entry.error().message});
    }
    return bad;
}

Result<std::int64_t> KernelCache::prune(std::int64_t max_bytes, std::string_view keep) {
    if (auto status = check(); !status) return status.error();
    std::vector<Removable> all;
    std::int64_t total = 0;
    // Broken entries and failed builds have no use to lose: they go first.
    for (const std::string& digest : digests()) {
        const std::string path = entry_dir(digest);
        const auto entry = read_entry(path, digest, false);
        all.push_back({entry ? entry->used : 0, digest, path, tree_bytes(path)});
        total += all.back().bytes;
    }
    for (const std::string& digest : failed()) {
        const std::string path = fmt::format("{}/failed/{}", root_, digest);
        all.push_back({0, digest, path, tree_bytes(path)});
        total += all.back().bytes;
    }
    std::sort(all.begin(), all.end(), [](const Removable& a, const Removable& b) {
        return std::tie(a.used, a.digest, a.path) < std::tie(b.used, b.digest, b.path);
    });
    std::int64_t removed = 0;
    for (const Removable& item : all) {
        if (total <= max_bytes) break;
        if (item.digest == keep) continue;
        if (auto status = discard(item.path); !status) return status.error();
        total -= item.bytes;
        ++removed;
    }
    return removed;
}

Result<std::int64_t> KernelCache::clear() {
    auto removed = prune(-1);
    if (!removed || root_.empty()) return removed;
    std::error_code ignored;
    for (fs::directory_iterator at(root_ + "/locks", ignored), end; !ignored && at != end; at.increment(ignored)) {
        const std::string path = at->path();
        // Only one that nobody holds; letting go of it removes the file.
        if (is_digest(at->path().filename().string())) {
            static_cast<void>(FileLock::acquire(path, std::chrono::milliseconds(0)));
        }
    }
    // Folders that are empty now; one with something foreign in it stays.
    for (const std::string& shard : names(root_ + "/v1", is_shard)) rmdir((root_ + "/v1/" + shard).c_str());
    return removed;
}

}  // namespace tilewise
