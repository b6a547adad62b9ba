// SPDX-License-Identifier: MIT
#include "build/pack.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "base/compress.hpp"
#include "base/fork_safe_mutex.hpp"
#include "base/json_object.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "build/build_request.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kMaxHeader = 160;  // bytes of the first line
constexpr auto kMaxBytes = static_cast<std::int64_t>(kMaxBlockBytes);

}  // namespace

Error Pack::broken(std::string_view why) const {
    return {ErrorCode::toolchain, fmt::format("the pack '{}' is not used: {}", path_, why)};
}

Result<Pack> Pack::open(const std::string& path) {
    auto file = TrustedFile::open(path, O_RDONLY);
    if (!file) return Error{ErrorCode::toolchain, fmt::format("the pack is not used: {}", file.error().message)};
    Pack pack(path);
    pack.file_ = std::make_shared<const TrustedFile>(std::move(*file));
    if (auto status = pack.read_index(pack.file_->info().st_size); !status) return status.error();
    return pack;
}

Result<Pack> Pack::from_memory(std::string_view contents, std::string name) {
    Pack pack(std::move(name));
    pack.memory_ = contents;
    if (auto status = pack.read_index(static_cast<std::int64_t>(contents.size())); !status) return status.error();
    return pack;
}

// The caller has made sure that the pack is as long as its index says, though a file may have been cut off since.
Result<std::string> Pack::bytes(std::int64_t offset, std::int64_t count) const {
    if (!file_) return std::string(memory_.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(count)));
    std::string text(static_cast<std::size_t>(count), '\0');
    std::size_t have = 0;
    while (have < text.size()) {
        const ssize_t got =
            pread(file_->fd(), text.data() + have, text.size() - have, offset + static_cast<off_t>(have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return broken(std::strerror(errno));
        if (got == 0) return broken("it is cut off");
        have += static_cast<std::size_t>(got);
    }
    return text;
}

Status Pack::read_index(std::int64_t pack_bytes) {
    const auto start = bytes(0, std::min<std::int64_t>(pack_bytes, kMaxHeader));
    if (!start) return start.error();
    const std::size_t end = start->find('\n');
    const auto words = split(std::string_view(*start).substr(0, end == std::string::npos ? 0 : end), ' ');
    if (words[0] != "tilewise-pack") return broken("it is not a pack");
    if (words.size() < 2 || words[1] != "2") {
        return broken(
            fmt::format("it has format {}; this library reads format 2: make it anew with tilewise build --pack",
                        words.size() < 2 ? "?" : words[1]));
    }
    const auto stored = words.size() == 5 ? parse_integer(words[2]) : std::nullopt;
    const auto index_bytes = words.size() == 5 ? parse_integer(words[3]) : std::nullopt;
    if (!stored || *stored < 0 || !index_bytes || *index_bytes < 0 || *index_bytes > kMaxBytes) {
        return broken("its first line is damaged");
    }
    const auto index_at = static_cast<std::int64_t>(end) + 1;
    if (*stored > pack_bytes - index_at) return broken("it is cut off");
    const auto packed = bytes(index_at, *stored);
    if (!packed) return packed.error();
    if (sha256_hex(*packed) != words[4]) return broken("its index is damaged");
    const auto index = decompress(*packed, static_cast<std::size_t>(*index_bytes));
    if (!index) return broken(index.error().message);
    return add_contents(*index, index_at + *stored, pack_bytes);
}

Status Pack::add_contents(const std::string& index, std::int64_t blocks_at, std::int64_t pack_bytes) {
    const auto json = Json::parse(index);
    if (!json) return broken(json.error().message);
    JsonObject object(*json, path_);
    const auto abi = object.integer("abi", 0, std::numeric_limits<int>::max());
    const std::string version = object.text("version");
    const Json* blocks = object.child("blocks");
    const Json* kernels = object.child("kernels");
    tuning_ = object.text_or("tuning", "");
    if (auto status = object.finish(); !status) return broken(status.error().message);
    if (abi != kKernelAbi) {
        return broken(fmt::format("it was made by tilewise {} for kernel ABI {}; this library has ABI {}", version, abi,
                                  kKernelAbi));
    }
    if (!blocks->array() || !kernels->array()) return broken("its list of kernels is damaged");
    if (auto status = add_blocks(*blocks, blocks_at, pack_bytes); !status) return status;
    return add_kernels(*kernels);
}

Status Pack::add_blocks(const Json& list, std::int64_t blocks_at, std::int64_t pack_bytes) {
    for (const Json& item : *list.array()) {
        JsonObject members(item, path_);
        const auto stored = members.integer("stored", 0, std::numeric_limits<std::int64_t>::max());
        const auto size = members.integer("bytes", 0, kMaxBytes);
        if (auto status = members.finish(); !status) return broken(status.error().message);
        if (stored > pack_bytes - blocks_at) return broken("it is cut off");
        blocks_.push_back({blocks_at, stored, size});
        blocks_at += stored;
    }
    return {};
}

Status Pack::add_kernels(const Json& list) {
    for (const Json& item : *list.array()) {
        JsonObject members(item, path_);
        const auto index = static_cast<std::size_t>(members.integer("block", 0, std::numeric_limits<int>::max()));
        const auto offset = members.integer("offset", 0, kMaxBytes);
        const Json* described = members.child("manifest");
        if (auto status = members.finish(); !status) return broken(status.error().message);
        auto manifest = parse_manifest(*described, path_);
        if (!manifest) return broken(manifest.error().message);
        if (index >= blocks_.size() || manifest->size > blocks_[index].bytes - offset) {
            return broken(fmt::format("kernel {} is in no block of it", manifest->kernel));
        }
        const std::string digest = manifest->digest;
        kernels_.emplace(digest, Kernel{std::move(*manifest), index, offset});
    }
    return {};
}

std::vector<Manifest> Pack::manifests() const {
    std::vector<Manifest> all;
    for (const auto& [digest, kernel] : kernels_) all.push_back(kernel.manifest);
    return all;
}

const Manifest* Pack::find(const std::string& digest) const {
    const auto at = kernels_.find(digest);
    return at == kernels_.end() ? nullptr : &at->second.manifest;
}

Result<std::shared_ptr<const std::string>> Pack::block(std::size_t index) const {
    {
        const std::scoped_lock lock(fork_safe_mutex());
        if (last_->contents && last_->index == index) return last_->contents;
    }
    const Block& from = blocks_[index];
    const auto stored = bytes(from.offset, from.stored);
    if (!stored) return stored.error();
    auto contents = decompress(*stored, static_cast<std::size_t>(from.bytes));
    if (!contents) return broken(contents.error().message);
    auto made = std::make_shared<const std::string>(std::move(*contents));
    auto before = made;  // freed after the lock is
    const std::scoped_lock lock(fork_safe_mutex());
    last_->index = index;
    last_->contents.swap(before);
    return made;
}

Result<std::string> Pack::read(const std::string& digest) const {
    const auto at = kernels_.find(digest);
    if (at == kernels_.end()) return broken(fmt::format("it has no kernel {}", digest));
    const auto& [manifest, index, offset] = at->second;
    const auto contents = block(index);
    if (!contents) return contents.error();
    std::string kernel = (*contents)->substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(manifest.size));
    if (sha256_hex(kernel) != manifest.sha256)
        return broken(fmt::format("kernel {} in it is damaged", manifest.kernel));
    return kernel;
}

}  // namespace tilewise
