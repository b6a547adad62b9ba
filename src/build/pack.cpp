// SPDX-License-Identifier: MIT
#include "build/pack.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/json_object.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "build/build_request.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kMaxHeader = 128;  // bytes of the first line

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
    if (words.size() < 2 || words[1] != "1") {
        return broken(fmt::format("it has format {}; this library reads format 1", words.size() < 2 ? "?" : words[1]));
    }
    const auto index_bytes = words.size() == 4 ? parse_integer(words[2]) : std::nullopt;
    if (!index_bytes || *index_bytes < 0) return broken("its first line is damaged");
    const auto index_at = static_cast<std::int64_t>(end) + 1;
    if (*index_bytes > pack_bytes - index_at) return broken("it is cut off");
    const auto index = bytes(index_at, *index_bytes);
    if (!index) return index.error();
    if (sha256_hex(*index) != words[3]) return broken("its index is damaged");
    return add_kernels(*index, index_at + *index_bytes, pack_bytes);
}

Status Pack::add_kernels(const std::string& index, std::int64_t blobs_at, std::int64_t pack_bytes) {
    const auto json = Json::parse(index);
    if (!json) return broken(json.error().message);
    JsonObject object(*json, path_);
    const auto abi = object.integer("abi", 0, std::numeric_limits<int>::max());
    const std::string version = object.text("version");
    const Json* kernels = object.child("kernels");
    if (auto status = object.finish(); !status) return broken(status.error().message);
    if (abi != kKernelAbi) {
        return broken(fmt::format("it was made by tilewise {} for kernel ABI {}; this library has ABI {}", version, abi,
                                  kKernelAbi));
    }
    if (!kernels->array()) return broken("its list of kernels is damaged");
    for (const Json& item : *kernels->array()) {
        JsonObject members(item, path_);
        const auto offset = members.integer("offset", 0, pack_bytes);
        const Json* described = members.child("manifest");
        if (auto status = members.finish(); !status) return broken(status.error().message);
        auto manifest = parse_manifest(*described, path_);
        if (!manifest) return broken(manifest.error().message);
        if (manifest->size > pack_bytes - blobs_at - offset) return broken("it is cut off");
        const std::string digest = manifest->digest;
        kernels_.emplace(digest, Kernel{std::move(*manifest), blobs_at + offset});
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

Result<std::string> Pack::read(const std::string& digest) const {
    const auto at = kernels_.find(digest);
    if (at == kernels_.end()) return broken(fmt::format("it has no kernel {}", digest));
    auto kernel = bytes(at->second.offset, at->second.manifest.size);
    if (kernel && sha256_hex(*kernel) != at->second.manifest.sha256) {
        return broken(fmt::format("kernel {} in it is damaged", at->second.manifest.kernel));
    }
    return kernel;
}

}  // namespace tilewise
