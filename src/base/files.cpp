// SPDX-License-Identifier: MIT
#include "base/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tilewise {
namespace {

namespace fs = std::filesystem;

// Configs, arch files and kernels are far smaller; a device file that never ends must not fill the memory.
constexpr std::size_t kLargestFile = std::size_t{1} << 30;

Error failure(std::string_view what, const std::string& path, int error) {
    return usage_error(fmt::format("cannot {} '{}': {}", what, path, std::strerror(error)));
}

// Returns the error number, 0 for none.
int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = write(fd, text.data(), text.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    return 0;
}

// Some file systems cannot sync (EINVAL, ENOTSUP); then there is nothing more to do.
int sync_all(int fd) { return fsync(fd) != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT) ? errno : 0; }

bool try_lock(int fd) {
    int answer = 0;
    do {
        answer = flock(fd, LOCK_EX | LOCK_NB);
    } while (answer != 0 && errno == EINTR);
    return answer == 0;
}

bool same_file(int fd, const std::string& path) {
    struct stat open_file {
    }, named_file{};
    return fstat(fd, &open_file) == 0 && lstat(path.c_str(), &named_file) == 0 &&
           open_file.st_dev == named_file.st_dev && open_file.st_ino == named_file.st_ino;
}

int open_directory(const std::string& path) {
    return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
    std::string text;
    if (file) {
        char buffer[1 << 16];
        std::size_t count = 0;
        while (text.size() <= kLargestFile && (count = std::fread(buffer, 1, sizeof buffer, file.get())) > 0) {
            text.append(buffer, count);
        }
        if (text.size() > kLargestFile)
            return usage_error(fmt::format("'{}' is larger than {} bytes", path, kLargestFile));
        if (!std::ferror(file.get())) return text;
    }
    return failure("read", path, errno);
}

Status write_file(const std::string& path, std::string_view text) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return failure("write", path, errno);
    int error = write_all(fd, text);
    if (close(fd) != 0 && error == 0 && errno != EINTR) error = errno;
    return error == 0 ? Status() : failure("write", path, error);
}

Status sync_files(const std::string& folder) {
    std::error_code unreadable;
    for (fs::directory_iterator at(folder, unreadable), end; !unreadable && at != end; at.increment(unreadable)) {
        const std::string path = at->path();
        const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) return failure("sync", path, errno);
        const int error = sync_all(fd);
        close(fd);
        if (error != 0) return failure("sync", path, error);
    }
    return unreadable ? failure("sync", folder, unreadable.value()) : Status();
}

Status make_directories(const std::string& path) {
    if (mkdir(path.c_str(), 0700) == 0) return {};
    if (errno == ENOENT) {
        const std::string parent = fs::path(path).parent_path();
        if (parent.empty() || parent == path) return failure("create the folder", path, ENOENT);
        if (auto status = make_directories(parent); !status) return status;
        if (mkdir(path.c_str(), 0700) == 0) return {};
    }
    const int error = errno;
    struct stat info {};
    const bool there = stat(path.c_str(), &info) == 0;
    if (there && S_ISDIR(info.st_mode)) return {};
    return failure("create the folder", path, there ? ENOTDIR : error);
}

Result<bool> publish_directory(const std::string& from, const std::string& to) {
    if (rename(from.c_str(), to.c_str()) == 0) return true;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return false;
    return failure("create", to, errno);
}

Status remove_tree(const std::string& path) {
    std::error_code error;
    fs::remove_all(path, error);  // by definition removes links, not what they point to
    return error ? failure("remove", path, error.value()) : Status();
}

Status check_owner(const std::string& path, bool allow_sticky) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return {};  // creating or reading it will say so
    if (info.st_uid != geteuid()) {
        return usage_error(
            fmt::format("the folder '{}' belongs to user {}, not to user {} who runs this; its contents "
                        "are not trusted",
                        path, info.st_uid, geteuid()));
    }
    const bool shared = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (shared && !(allow_sticky && (info.st_mode & S_ISVTX) != 0)) {
        return usage_error(
            fmt::format("other users may write to the folder '{}' (mode {:o}); its contents are not "
                        "trusted until you run: chmod go-w '{}'",
                        path, info.st_mode & 07777, path));
    }
    return {};
}

// --- PrivateDir -----------------------------------------------------------------------------------------------------

PrivateDir::PrivateDir(std::string path, int fd) : path_(std::move(path)), fd_(fd), owner_(getpid()) {}

PrivateDir::PrivateDir(PrivateDir&& other) noexcept
    : path_(std::exchange(other.path_, {})), fd_(std::exchange(other.fd_, -1)), owner_(other.owner_) {}

Result<PrivateDir> PrivateDir::create(const std::string& parent, std::string_view prefix) {
    for (int attempt = 0;; ++attempt) {
        std::string path = fmt::format("{}/{}XXXXXX", parent, prefix);
        if (!mkdtemp(path.data())) return failure("create a folder in", parent, errno);
        const int fd = open_directory(path);
        const bool locked = fd >= 0 && try_lock(fd);
        // Where folders cannot be locked nobody can take it for abandoned either.
        const bool lockable = locked || errno == EWOULDBLOCK || errno == ENOENT;
        if (fd >= 0 && (!lockable || (locked && same_file(fd, path)))) return PrivateDir(std::move(path), fd);
        // In the moment before we had the lock another process took the folder for an abandoned one: try again.
        const int error = errno;
        if (fd >= 0) close(fd);
        if (attempt == 100 || (fd < 0 && error != ENOENT)) return failure("keep a folder in", parent, error);
    }
}

void PrivateDir::remove_abandoned(const std::string& parent, std::string_view prefix) {
    std::error_code error;
    for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
        const std::string path = at->path();
        if (!at->path().filename().string().starts_with(prefix)) continue;
        const int fd = open_directory(path);
        if (fd < 0) continue;
        struct stat info {};
        const bool ours = fstat(fd, &info) == 0 && info.st_uid == geteuid();
        if (ours && try_lock(fd)) static_cast<void>(remove_tree(path));  // what cannot be removed stays
        close(fd);
    }
}

PrivateDir::~PrivateDir() {
    if (fd_ < 0) return;
    // The folder first: while it is locked nobody else removes it at the same time.
    if (owner_ == getpid()) {
        static_cast<void>(remove_tree(path_));
        flock(fd_, LOCK_UN);
    }
    close(fd_);
}

// --- FileLock -------------------------------------------------------------------------------------------------------

FileLock::FileLock(std::string path, int fd) : path_(std::move(path)), fd_(fd), owner_(getpid()) {}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::exchange(other.path_, {})), fd_(std::exchange(other.fd_, -1)), owner_(other.owner_) {}

Result<std::optional<FileLock>> FileLock::acquire(const std::string& path, std::chrono::milliseconds time_limit) {
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + time_limit;
    for (auto pause = 1ms;; pause = std::min(2 * pause, 20ms)) {
        const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0) return failure("lock", path, errno);
        if (try_lock(fd)) {
            if (same_file(fd, path)) return std::optional<FileLock>(FileLock(path, fd));
            close(fd);  // its last holder removed it meanwhile: the lock is now another file
            continue;
        }
        const int error = errno;
        close(fd);
        if (error != EWOULDBLOCK) return failure("lock", path, error);
        if (std::chrono::steady_clock::now() >= deadline) return std::optional<FileLock>();
        std::this_thread::sleep_for(pause);
    }
}

FileLock::~FileLock() {
    if (fd_ < 0) return;
    if (owner_ == getpid()) {
        unlink(path_.c_str());
        flock(fd_, LOCK_UN);  // said outright: a forked child may still hold the same file open
    }
    close(fd_);
}

}  // namespace tilewise
