// SPDX-License-Identifier: MIT
// A pack: many built kernels in one file, made on one machine and used, read-only, on others that need no compiler.
//
//   tilewise-pack 1 <bytes of the index> <sha256 of the index>\n
//   the index, JSON: {"abi", "version", "kernels": [{"offset", "manifest"}]}
//   the kernels, one after the other; offsets count from the end of the index
//
// The index is checked when a pack is opened, a kernel when it is read. Which kernels fit is decided by their digests. What
// is in a pack runs with our rights: one that others than root and this user may have written is refused (trust.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/trust.hpp"
#include "build/manifest.hpp"

namespace tilewise {

class Pack {
public:
    Pack() = default;  // without kernels
    static Result<Pack> open(const std::string& path);
    // Reads a pack that is in memory already and stays there; `name` is for messages.
    static Result<Pack> from_memory(std::string_view contents, std::string name);

    const std::string& path() const { return path_; }
    std::size_t size() const { return kernels_.size(); }
    std::vector<Manifest> manifests() const;  // in the order of their digests

    const Manifest* find(const std::string& digest) const;  // null: not in this pack
    Result<std::string> read(const std::string& digest) const;

private:
    struct Kernel {
        Manifest manifest;
        std::int64_t offset = 0;  // in the pack
    };

    explicit Pack(std::string path) : path_(std::move(path)) {}
    Status read_index(std::int64_t pack_bytes);
    Status add_kernels(const std::string& index, std::int64_t blobs_at, std::int64_t pack_bytes);
    Result<std::string> bytes(std::int64_t offset, std::int64_t count) const;
    Error broken(std::string_view why) const;

    std::string path_;
    std::shared_ptr<const TrustedFile> file_;  // closed with the last copy; null for a pack in memory
    std::string_view memory_;
    std::map<std::string, Kernel, std::less<>> kernels_;
};

struct PackItem {
    Manifest manifest;
    std::string path;  // of the built kernel
};

// Replaces `path` in one step. Each kernel is checked against its manifest on the way.
Status write_pack(std::span<const PackItem> items, const std::string& path);

}  // namespace tilewise
