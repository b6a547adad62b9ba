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
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

namespace tilewise {
namespace {

namespace fs = std::filesystem;

// Configs, arch files and kernels are far smaller; a device file that never ends must not fill the memory.
constexpr std::size_t kLargestFile = std::size_t{1} << 30;

constexpr std::string_view kOpenFiles = "/proc/self/fd/";

// In every PrivateDir. Before it is there, an empty folder is known by its mode, which nobody else would give it.
constexpr const char* kMark = ".made-by-tilewise";
constexpr mode_t kPrivateMode = S_IRWXU | S_ISVTX;

Error failure(std::string_view what, const std::string& path, int error) {
    return usage_error(fmt::format("cannot {} '{}': {}", what, shown(path), std::strerror(error)));
}

// Sixteen hex digits that nobody can foresee.
std::string random_digits() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
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

bool is_private(int fd) {
    struct stat info {};
    return fstat(fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Returns the error number, 0 for none.
int mark(int fd) {
    const int file = openat(fd, kMark, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return errno;
    close(file);
    return 0;
}

// Its maker may have been killed before it was marked.
bool was_made_here(int fd) {
    struct stat info {};
    if (fstatat(fd, kMark, &info, AT_SYMLINK_NOFOLLOW) == 0) return true;
    std::error_code unreadable;
    return fstat(fd, &info) == 0 && (info.st_mode & 07777) == kPrivateMode &&
           fs::is_empty(path_of(fd, ""), unreadable) && !unreadable;
}

// Through the open folder: its name may meanwhile be another's. The mark goes last, with the folder; what cannot be removed
// stays.
void remove_folder(int fd, const std::string& path) {
    std::error_code error;
    for (fs::directory_iterator at(path_of(fd, path), error), end; !error && at != end; at.increment(error)) {
        if (at->path().filename() != kMark) static_cast<void>(remove_tree(at->path()));
    }
    unlinkat(fd, kMark, 0);
    rmdir(path.c_str());
}

}  // namespace

std::string path_of(int fd, const std::string& path) {
    std::string open_path = fmt::format("{}{}", kOpenFiles, fd);
    return access(open_path.c_str(), F_OK) == 0 ? open_path : path;
}

std::string shown(const std::string& path) {
    if (!path.starts_with(kOpenFiles)) return path;
    const std::size_t end = std::min(path.find('/', kOpenFiles.size()), path.size());
    std::error_code unknown;
    const std::string folder = fs::read_symlink(path.substr(0, end), unknown);
    return unknown ? path : folder + path.substr(end);
}

Result<std::string> read_open_file(int fd, const std::string& path) {
    std::string text;
    char buffer[1 << 16];
    while (text.size() <= kLargestFile) {
        const ssize_t count = read(fd, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failure("read", path, errno);
        if (count == 0) return text;
        text.append(buffer, static_cast<std::size_t>(count));
    }
    return usage_error(fmt::format("'{}' is larger than {} bytes", shown(path), kLargestFile));
}

Result<std::string> read_file(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failure("read", path, errno);
    auto text = read_open_file(fd, path);
    close(fd);
    return text;
}

// --- NewFile --------------------------------------------------------------------------------------------------------

NewFile::NewFile(std::string path, std::string unfinished, int fd)
    : path_(std::move(path)), unfinished_(std::move(unfinished)), fd_(fd) {}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)), unfinished_(std::move(other.unfinished_)), fd_(std::exchange(other.fd_, -1)) {}

Result<NewFile> NewFile::create(const std::string& path, mode_t mode) {
    struct stat info {};
    if (lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
        return usage_error(fmt::format(
            "cannot write '{}': it is not a plain file; name one, or one that is not there yet", shown(path)));
    }
    std::string unfinished = fmt::format("{}.{}", path, random_digits());
    const int fd = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) return failure("write", path, errno);
    return NewFile(path, std::move(unfinished), fd);
}

NewFile::~NewFile() {
    if (fd_ < 0) return;
    unlink(unfinished_.c_str());
    close(fd_);
}

Status NewFile::append(std::string_view text) {
    const int error = write_all(fd_, text);
    return error == 0 ? Status() : failure("write", path_, error);
}

Status NewFile::sync() {
    const int error = sync_all(fd_);
    return error == 0 ? Status() : failure("write", path_, error);
}

Status NewFile::publish() {
    const int fd = std::exchange(fd_, -1);
    int error = close(fd) != 0 && errno != EINTR ? errno : 0;
    if (error == 0 && rename(unfinished_.c_str(), path_.c_str()) != 0) error = errno;
    if (error == 0) return {};
    unlink(unfinished_.c_str());
    return failure("write", path_, error);
}

Status write_file(const std::string& path, std::string_view text, mode_t mode) {
    auto file = NewFile::create(path, mode);
    if (!file) return file.error();
    if (auto status = file->append(text); !status) return status;
    return file->publish();
}

// --- folders --------------------------------------------------------------------------------------------------------

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

// --- PrivateDir -----------------------------------------------------------------------------------------------------

PrivateDir::PrivateDir(std::string path, int fd) : path_(std::move(path)), fd_(fd), owner_(getpid()) {}

PrivateDir::PrivateDir(PrivateDir&& other) noexcept
    : path_(std::exchange(other.path_, {})), fd_(std::exchange(other.fd_, -1)), owner_(other.owner_) {}

Result<PrivateDir> PrivateDir::create(const std::string& parent, std::string_view prefix) {
    for (int attempt = 0;; ++attempt) {
        std::string path = fmt::format("{}/{}{}", parent, prefix, random_digits());
        if (mkdir(path.c_str(), kPrivateMode) != 0) return failure("create a folder in", parent, errno);
        const int fd = open_directory(path);
        const bool locked = fd >= 0 && try_lock(fd);
        // Where folders cannot be locked nobody can take it for abandoned either.
        const bool lockable = locked || errno == EWOULDBLOCK || errno == ENOENT;
        if (fd >= 0 && (!lockable || (locked && same_file(fd, path)))) {
            PrivateDir dir(std::move(path), fd);
            if (!is_private(fd)) return failure("keep a folder in", parent, EPERM);  // someone has exchanged it
            if (const int error = mark(fd); error != 0) return failure("create a folder in", parent, error);
            return dir;
        }
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
        if (is_private(fd) && try_lock(fd) && was_made_here(fd)) remove_folder(fd, path);
        close(fd);
    }
}

PrivateDir::~PrivateDir() {
    if (fd_ < 0) return;
    // The folder first: while it is locked nobody else removes it at the same time.
    if (owner_ == getpid()) {
        remove_folder(fd_, path_);
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
