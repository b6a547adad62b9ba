// SPDX-License-Identifier: MIT
#include "build/checked_code.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.hpp"
#include "base/sha256.hpp"
#include "base/trust.hpp"
#include "build/memory_file.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {

CheckedCode::~CheckedCode() {
    if (shelf_ >= 0) close(shelf_);
}

// The file is <shelf>/<digest>/kernel.*: in the cache the shelf is a shard, else the folder of a private build. It is held
// open, and below it everything must be ours alone, so that the path leads to this file and no other. The digest stays part
// of the path, since the loader knows libraries by name.
Result<std::string> CheckedCode::read(const BuiltKernel& kernel) {
    path_ = kernel.path;
    if (is_memory_file(path_)) return read_file(path_);
    const std::size_t name = path_.rfind('/');
    const std::size_t folder = path_.rfind('/', name - 1);
    const std::string shelf = path_.substr(0, folder);
    shelf_ = ::open(shelf.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (shelf_ < 0) return usage_error(fmt::format("cannot open '{}': {}", shelf, std::strerror(errno)));
    const std::string held = path_of(shelf_, shelf);
    path_.replace(0, folder, held);
    for (const std::string& level : {held + "/.", path_.substr(0, path_.rfind('/'))}) {
        if (auto status = check_owner(level, false); !status) return status.error();
    }
    return read_trusted_file(path_);
}

Result<CheckedCode> CheckedCode::open(const BuiltKernel& kernel) {
    CheckedCode code;
    auto bytes = code.read(kernel);
    if (!bytes) {
        return toolchain_error(
            fmt::format("kernel {} is not loaded: {}", kernel.manifest.kernel, bytes.error().message));
    }
    if (sha256_hex(*bytes) != kernel.manifest.sha256) {
        return toolchain_error(fmt::format(
            "kernel {} is not loaded: the contents of '{}' are not those of its manifest; remove its folder, "
            "and it is built again",
            kernel.manifest.kernel, kernel.path));
    }
    code.bytes_ = std::move(*bytes);
    return code;
}

}  // namespace tilewise
