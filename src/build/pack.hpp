// SPDX-License-Identifier: MIT
// A pack: many built kernels in one file, made on one machine and used, read-only, on others that need no compiler.
//
//   tilewise-pack 2 <stored bytes of the index> <bytes of the index> <sha256 of the stored index>\n
//   the index, compressed JSON: {"abi", "version", "blocks": [{"stored", "bytes"}], "kernels": [{"block", "offset", "manifest"}],
//   "tuning"}
//   the blocks, one after the other, each compressed (base/compress.hpp) and of many kernels that are alike
//
// The index is checked when a pack is opened, a kernel when it is read, which takes its block alone. Which kernels fit is decided by
// their digests. What is in a pack runs with our rights: one that others than root and this user may have written is refused
// (trust.hpp). The tuning records, lines of a tuning database, say what was fastest where the pack was made; the key is missing where there are none.
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
    const std::string& tuning() const { return tuning_; }

    const Manifest* find(const std::string& digest) const;  // null: not in this pack
    Result<std::string> read(const std::string& digest) const;

private:
    struct Block {
        std::int64_t offset = 0;  // in the pack
        std::int64_t stored = 0, bytes = 0;
    };
    struct Kernel {
        Manifest manifest;
        std::size_t block = 0;
        std::int64_t offset = 0;  // in the block
    };
    // The block that was read last: the kernels of a program are often in the same.
    struct LastBlock {
        std::size_t index = 0;
        std::shared_ptr<const std::string> contents;
    };

    explicit Pack(std::string path) : path_(std::move(path)) {}
    Status read_index(std::int64_t pack_bytes);
    Status add_contents(const std::string& index, std::int64_t blocks_at, std::int64_t pack_bytes);
    Status add_blocks(const Json& list, std::int64_t blocks_at, std::int64_t pack_bytes);
    Status add_kernels(const Json& list);
    Result<std::string> bytes(std::int64_t offset, std::int64_t count) const;
    Result<std::shared_ptr<const std::string>> block(std::size_t index) const;
    Error broken(std::string_view why) const;

    std::string path_;
    std::shared_ptr<const TrustedFile> file_;  // closed with the last copy; null for a pack in memory
    std::string_view memory_;
    std::vector<Block> blocks_;
    std::map<std::string, Kernel, std::less<>> kernels_;
    std::string tuning_;
    std::shared_ptr<LastBlock> last_ = std::make_shared<LastBlock>();  // read and replaced under fork_safe_mutex
};

struct PackItem {
    Manifest manifest;
    std::string path;  // of the built kernel
};

struct PackOptions {
    std::string tuning;  // lines of a tuning database
    int jobs = 1;        // threads that compress
};

// Replaces `path` in one step. Each kernel is checked against its manifest on the way.
Status write_pack(std::span<const PackItem> items, const std::string& path, const PackOptions& options = {});

}  // namespace tilewise
