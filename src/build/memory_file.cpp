// SPDX-License-Identifier: MIT
#include "build/memory_file.hpp"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

namespace tilewise {
namespace {

constexpr std::string_view kOpenFiles = "/proc/self/fd/";

Error failure(int error) {
    return {ErrorCode::toolchain, fmt::format("cannot keep a kernel in memory: {}", std::strerror(error))};
}

}  // namespace

Result<std::string> memory_file(const std::string& digest, std::string_view contents) {
    static std::mutex mutex;
    static std::map<std::string, std::string> paths;
    const std::scoped_lock lock(mutex);
    if (const auto at = paths.find(digest); at != paths.end()) return at->second;
    const int fd = memfd_create("tilewise-kernel", MFD_CLOEXEC);
    if (fd < 0) return failure(errno);
    while (!contents.empty()) {
        const ssize_t count = write(fd, contents.data(), contents.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            const int error = errno;
            close(fd);
            return failure(error);
        }
        contents.remove_prefix(static_cast<std::size_t>(count));
    }
    // Never closed: the loader knows libraries by name, and a number used again would be taken for the first kernel.
    std::string path = fmt::format("{}{}", kOpenFiles, fd);
    paths.emplace(digest, path);
    return path;
}

bool is_memory_file(std::string_view path) {
    return path.starts_with(kOpenFiles) && path.find('/', kOpenFiles.size()) == std::string_view::npos;
}

}  // namespace tilewise
