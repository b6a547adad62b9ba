// SPDX-License-Identifier: MIT
#include "base/trust.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/files.hpp"

namespace tilewise {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

Error cannot_open(const std::string& path, int error) {
    if (error == ELOOP) return usage_error(fmt::format("'{}' is a link, which is not followed here", shown(path)));
    return usage_error(fmt::format("cannot open '{}': {}", shown(path), std::strerror(error)));
}

// Says what is wrong with a file; `info` describes the open file.
Status check_file(const struct stat& info, const std::string& path) {
    if (!S_ISREG(info.st_mode)) return usage_error(fmt::format("'{}' is not a plain file", shown(path)));
    if (!trusts_owner(info.st_uid)) {
        const bool only_root = !trusts_owner(geteuid());
        return usage_error(fmt::format(
            "the file '{}' belongs to user {}, not to root{}; it is not trusted until you, knowing what is in it, run: "
            "chown {} '{}'",
            shown(path), info.st_uid, only_root ? "" : fmt::format(" or user {} who runs this", geteuid()),
            only_root ? 0 : geteuid(), shown(path)));
    }
    if ((info.st_mode & kOthersWrite) != 0) {
        return usage_error(
            fmt::format("other users may write to the file '{}' (mode {:o}); it is not trusted until you, knowing what "
                        "is in it, run: chmod go-w '{}'",
                        shown(path), info.st_mode & 07777, shown(path)));
    }
    return {};
}

}  // namespace

bool has_raised_rights() { return getauxval(AT_SECURE) != 0; }

bool trusts_owner(uid_t owner) {
    return owner == 0 || (owner == geteuid() && !(has_raised_rights() && geteuid() == getuid()));
}

Status check_owner(const std::string& path, bool outermost) {
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) return {};  // creating it will say so
    if (S_ISLNK(info.st_mode)) {
        if (!outermost || !trusts_owner(info.st_uid)) {
            return usage_error(
                fmt::format("'{}' is a link of user {}; what it leads to is not trusted until you "
                            "replace it by a folder",
                            shown(path), info.st_uid));
        }
        if (stat(path.c_str(), &info) != 0) return {};
    }
    if (!S_ISDIR(info.st_mode)) return {};  // as above
    if (info.st_uid != geteuid()) {
        return usage_error(
            fmt::format("the folder '{}' belongs to user {}, not to user {} who runs this; its contents "
                        "are not trusted",
                        shown(path), info.st_uid, geteuid()));
    }
    if ((info.st_mode & kOthersWrite) != 0 && !(outermost && (info.st_mode & S_ISVTX) != 0)) {
        return usage_error(
            fmt::format("other users may write to the folder '{}' (mode {:o}); its contents are not "
                        "trusted until you run: chmod go-w '{}'",
                        shown(path), info.st_mode & 07777, shown(path)));
    }
    return {};
}

Result<TrustedFile> TrustedFile::open(const std::string& path, int flags, mode_t mode) {
    // Not blocking: nobody may ever open the other end of a FIFO.
    const int fd = ::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC, mode);
    if (fd < 0) return cannot_open(path, errno);
    struct stat info {};
    const int error = fstat(fd, &info) == 0 ? 0 : errno;
    TrustedFile file(fd, info);
    if (error != 0) return cannot_open(path, error);
    if (auto status = check_file(info, path); !status) return status.error();
    return file;
}

Result<TrustedFile> TrustedFile::open_to_append(const std::string& path) {
    if (auto status = make_directories(std::filesystem::path(path).parent_path()); !status) return status.error();
    auto file = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    if (file && file->info().st_nlink > 1) {
        return usage_error(fmt::format("'{}' is also another file's name, which is not written to", path));
    }
    return file;
}

Status TrustedFile::append(std::string_view text, const std::string& path) const {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) return {};
    return usage_error(
        fmt::format("cannot write '{}': {}", shown(path), written < 0 ? std::strerror(errno) : "the disk is full"));
}

TrustedFile::~TrustedFile() {
    if (fd_ >= 0) close(fd_);
}

Result<std::string> read_trusted_file(const std::string& path) {
    const auto file = TrustedFile::open(path, O_RDONLY | O_NOFOLLOW);
    if (!file) return file.error();
    return read_open_file(file->fd(), path);
}

}  // namespace tilewise
