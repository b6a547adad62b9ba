// SPDX-License-Identifier: MIT
// Built kernels on disk, found by the digest of what they were built from. An entry is a folder that appears by one
// rename and never changes, so that any number of processes may look, build, publish and remove at the same time:
//
//   <root>/v1/<first 2 of digest>/<digest>/   kernel.so  source.cpp  manifest.json  used
//   <root>/tmp/build-*        what is being built or removed; a killed process's is removed by the next one
//   <root>/locks/<digest>     held while that kernel is built, to save others the work; nothing depends on it
//   <root>/failed/<digest>/   source, headers, command and log of a kernel that did not compile
//   <root>/libraries/         names that the Python package gives to kernels
//
// Nothing is judged by file times; that of `used` orders entries when the cache has grown too large.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/result.hpp"
#include "build/manifest.hpp"

namespace tilewise {

struct CacheEntry {
    Manifest manifest;
    std::string path;        // of the kernel's file
    std::int64_t bytes = 0;  // of all its files
    std::int64_t used = 0;   // when it was last used; only the order means something
};

struct CacheStats {
    std::int64_t entries = 0;
    std::int64_t bytes = 0;
    std::int64_t failed = 0;  // builds that failed and are kept to be looked at
};

struct BadEntry {
    std::string digest;
    std::string reason;
};

class KernelCache {
public:
    explicit KernelCache(std::string root);  // touches nothing; an empty root holds nothing and takes nothing

    const std::string& root() const { return root_; }

    // An error when another user owns the cache, the shard of `digest` or another of its folders, or may write to it: what
    // is in it could be anything.
    Status check(std::string_view digest = {}) const;

    // The entry, if it is there, whole and ours alone. One that is not is moved out of the way, never returned. Contents
    // are hashed the first time this object sees them.
    std::optional<CacheEntry> find(const std::string& digest);

    void forget(const std::string& digest);  // its contents are hashed again

    // Reads the manifest of find()'s entry; the file itself may still turn out to be damaged.
    std::optional<Manifest> peek(const std::string& digest) const;
    // Whether there is something for find() to look at.
    bool may_have(const std::string& digest) const;

    // A folder to build in, on the same file system; an error when the cache cannot be written.
    Result<PrivateDir> private_dir();
    // Moves a folder with a kernel, its source and its manifest into its place. Another process's entry of the same
    // digest is as good; the entry that is there in the end is returned.
    Result<CacheEntry> publish(const std::string& folder, const std::string& digest);
    // Takes an entry away that is in the way of a better one.
    Status remove(const std::string& digest);
    // Keeps a folder under failed/; returns where it is.
    Result<std::string> keep_failed(const std::string& folder, const std::string& digest);
    std::optional<std::string> failed_at(const std::string& digest) const;  // where it is, if it is
    Result<std::optional<FileLock>> lock(const std::string& digest, std::chrono::milliseconds time_limit);

    // kernel_cache_admin.cpp:
    std::vector<CacheEntry> ls() const;  // the readable ones, most recently used first
    CacheStats stats() const;
    std::vector<BadEntry> verify() const;  // hashes everything; changes nothing
    // Removes the least recently used until at most `max_bytes` are left; never `keep`. Returns how many went.
    Result<std::int64_t> prune(std::int64_t max_bytes, std::string_view keep = {});
    Result<std::int64_t> clear();  // all entries and leftovers; what is not of this layout stays

private:
    class Held;

    std::string entry_dir(const std::string& digest) const;
    Status make_folder(const std::string& path, std::string_view digest = {}) const;
    // An entry's folders by digest, readable or not.
    std::vector<std::string> digests() const;
    std::vector<std::string> failed() const;
    // With `only`: something else that has the name by now stays.
    Status discard(const std::string& path, const Held* only = nullptr);
    void touch(const std::string& folder) const;

    std::string root_;
    std::mutex mutex_;
    std::set<std::string, std::less<>> seen_;  // digests whose contents were hashed and found right
};

// Reads an entry's manifest and compares it with the files; `hash`: the contents, too. An error also where another user
// owns any of it, its shard included, or may write to it.
Result<CacheEntry> read_entry(const std::string& folder, const std::string& digest, bool hash);

}  // namespace tilewise
