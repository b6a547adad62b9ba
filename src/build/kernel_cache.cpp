// SPDX-License-Identifier: MIT
#include "build/kernel_cache.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/sha256.hpp"
#include "base/trust.hpp"
#include "build/build_request.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kBuildPrefix = "build-";
constexpr std::size_t kShardDigits = 2;

bool exists(const std::string& path) {
    struct stat info {};
    return lstat(path.c_str(), &info) == 0;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

// A file or folder, whatever name it has later. While it is held, no other gets its number.
class KernelCache::Held {
public:
    explicit Held(const std::string& path) : fd_(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)) {}
    ~Held() {
        if (fd_ >= 0) close(fd_);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    bool is_at(const std::string& path) const {
        struct stat ours {};
        struct stat now {};
        return fstat(fd_, &ours) == 0 && lstat(path.c_str(), &now) == 0 && ours.st_dev == now.st_dev &&
               ours.st_ino == now.st_ino;
    }

private:
    int fd_;
};

Result<CacheEntry> read_entry(const std::string& folder, const std::string& digest, bool hash) {
    for (const std::string& level : {parent_of(folder), folder}) {
        if (auto status = check_owner(level, false); !status) return status.error();
    }
    const std::string manifest_path = folder + "/manifest.json";
    const auto text = read_trusted_file(manifest_path);
    if (!text) return text.error();
    const auto json = Json::parse(*text);
    if (!json) return usage_error(fmt::format("{}: {}", manifest_path, json.error().message));
    auto manifest = parse_manifest(*json, manifest_path);
    if (!manifest) return manifest.error();
    if (manifest->digest != digest) return usage_error(fmt::format("{} is of another kernel", manifest_path));

    CacheEntry entry;
    entry.manifest = std::move(*manifest);
    entry.path = fmt::format("{}/{}", folder, entry.manifest.file);
    const auto kernel = TrustedFile::open(entry.path, O_RDONLY | O_NOFOLLOW);
    if (!kernel) return kernel.error();
    const std::int64_t kernel_bytes = kernel->info().st_size;
    if (kernel_bytes != entry.manifest.size) {
        return usage_error(
            fmt::format("'{}' has {} bytes instead of {}", entry.path, kernel_bytes, entry.manifest.size));
    }
    if (hash) {
        const auto contents = read_open_file(kernel->fd(), entry.path);
        if (!contents) return contents.error();
        if (sha256_hex(*contents) != entry.manifest.sha256) {
            return usage_error(fmt::format("the contents of '{}' have changed", entry.path));
        }
    }
    entry.bytes = kernel_bytes + static_cast<std::int64_t>(text->size());
    struct stat info {};
    if (lstat((folder + "/source.cpp").c_str(), &info) == 0) entry.bytes += info.st_size;
    if (lstat((folder + "/used").c_str(), &info) == 0) {
        constexpr std::int64_t kUnitsPerSecond = 1'000'000, kLatest = std::int64_t{1} << 42;  // any time may be set
        entry.used = std::clamp<std::int64_t>(info.st_mtim.tv_sec, 0, kLatest) * kUnitsPerSecond +
                     info.st_mtim.tv_nsec / (1'000'000'000 / kUnitsPerSecond);
    }
    return entry;
}

KernelCache::KernelCache(std::string root) : root_(std::move(root)) {}

std::string KernelCache::entry_dir(const std::string& digest) const {
    return fmt::format("{}/v1/{}/{}", root_, digest.substr(0, kShardDigits), digest);
}

// Checked once it is there: someone may have been quicker to make it.
Status KernelCache::make_folder(const std::string& path, std::string_view digest) const {
    if (auto status = make_directories(path); !status) return status;
    return check(digest);
}

Status KernelCache::check(std::string_view digest) const {
    if (root_.empty()) return {};
    std::vector<std::string> folders = {"", "/v1", "/tmp", "/locks", "/failed", "/libraries"};
    if (!digest.empty()) folders.push_back(fmt::format("/v1/{}", digest.substr(0, kShardDigits)));
    for (const std::string& folder : folders) {
        // In a sticky root others cannot take our folders away; those themselves must be ours alone.
        if (auto status = check_owner(root_ + folder, folder.empty()); !status) {
            return Error{status.error().code,
                         fmt::format("the kernel cache is refused: {}. TILEWISE_CACHE_DIR names another folder",
                                     status.error().message)};
        }
    }
    return {};
}

std::optional<CacheEntry> KernelCache::find(const std::string& digest) {
    if (root_.empty() || !is_digest(digest)) return std::nullopt;
    const std::string folder = entry_dir(digest);
    const Held there(folder);
    bool seen = false;
    {
        const std::scoped_lock lock(mutex_);
        seen = seen_.contains(digest);
    }
    auto entry = read_entry(folder, digest, !seen);
    if (!entry) {
        forget(digest);
        // Whatever was there instead would be in the way of a good one. If it cannot be moved, the kernel is built
        // elsewhere. What another process has published since is good.
        if (there.is_at(folder)) static_cast<void>(discard(folder, &there));
        return std::nullopt;
    }
    if (!seen) {
        touch(folder);
        const std::scoped_lock lock(mutex_);
        seen_.insert(digest);
    }
    return std::move(*entry);
}

void KernelCache::forget(const std::string& digest) {
    const std::scoped_lock lock(mutex_);
    seen_.erase(digest);
}

bool KernelCache::may_have(const std::string& digest) const { return !root_.empty() && exists(entry_dir(digest)); }

std::optional<Manifest> KernelCache::peek(const std::string& digest) const {
    if (!may_have(digest)) return std::nullopt;
    auto entry = read_entry(entry_dir(digest), digest, false);
    return entry ? std::optional(std::move(entry->manifest)) : std::nullopt;
}

// Failing is fine: on a read-only disk nothing is ever removed either.
void KernelCache::touch(const std::string& folder) const {
    const auto used = TrustedFile::open(folder + "/used", O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
    if (used) futimens(used->fd(), nullptr);
}

Result<PrivateDir> KernelCache::private_dir() {
    if (root_.empty()) {
        return usage_error("no folder for cached kernels: none of TILEWISE_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    }
    const std::string parent = root_ + "/tmp";
    if (auto status = make_folder(parent); !status) return status.error();
    auto dir = PrivateDir::create(parent, kBuildPrefix);
    if (dir) PrivateDir::remove_abandoned(parent, kBuildPrefix);  // ours is locked, thus not abandoned
    return dir;
}

Result<CacheEntry> KernelCache::publish(const std::string& folder, const std::string& digest) {
    touch(folder);
    if (auto status = sync_files(folder); !status) return status.error();
    const std::string target = entry_dir(digest);
    Error last = usage_error(fmt::format("cannot put a kernel at '{}'", target));
    constexpr int kAttempts = 5;  // only a fight over a broken entry or against clear() needs more than one
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        if (auto status = make_folder(parent_of(target), digest); !status) return status.error();
        const auto published = publish_directory(folder, target);
        if (!published) {
            last = published.error();
            continue;
        }
        if (*published) {
            // The bytes that were just written are not read again.
            const std::scoped_lock lock(mutex_);
            seen_.insert(digest);
        }
        if (auto entry = find(digest)) return std::move(*entry);
    }
    return last;
}

Status KernelCache::remove(const std::string& digest) {
    forget(digest);
    return discard(entry_dir(digest));
}

Result<std::string> KernelCache::keep_failed(const std::string& folder, const std::string& digest) {
    std::string target = fmt::format("{}/failed/{}", root_, digest);
    if (auto status = make_folder(root_ + "/failed"); !status) return status.error();
    auto kept = publish_directory(folder, target);
    if (kept && !*kept) {  // of an earlier attempt
        if (auto status = discard(target); !status) return status.error();
        kept = publish_directory(folder, target);
    }
    if (!kept) return kept.error();
    return target;  // when another process has put its own there meanwhile, that says the same
}

std::optional<std::string> KernelCache::failed_at(const std::string& digest) const {
    std::string path = fmt::format("{}/failed/{}", root_, digest);
    return !root_.empty() && exists(path) ? std::optional(std::move(path)) : std::nullopt;
}

Result<std::optional<FileLock>> KernelCache::lock(const std::string& digest, std::chrono::milliseconds time_limit) {
    if (auto status = make_folder(root_ + "/locks"); !status) return status.error();
    return FileLock::acquire(fmt::format("{}/locks/{}", root_, digest), time_limit);
}

// First out of sight by a rename, so that nobody ever sees half an entry, then removed.
Status KernelCache::discard(const std::string& path, const Held* only) {
    auto trash = private_dir();
    if (!trash) return trash.error();
    const std::string target = trash->inside() + "/gone";
    if (rename(path.c_str(), target.c_str()) != 0) {
        if (errno == ENOENT) return {};
        return usage_error(fmt::format("cannot remove '{}': {}", path, std::strerror(errno)));
    }
    if (only && !only->is_at(target)) static_cast<void>(publish_directory(target, path));
    return {};
}

}  // namespace tilewise
