// SPDX-License-Identifier: MIT
// Files and folders that several processes use at once: whole-file reads, files and folders that appear in one step, private
// folders that clean up after themselves even after a kill, and advisory locks. Every error names the path and the
// reason. Whom a file or folder belongs to is asked in trust.hpp.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace tilewise {

Result<std::string> read_file(const std::string& path);
Result<std::string> read_open_file(int fd, const std::string& path);  // from where it stands; `path` is for messages

// A file that takes the place of another in one step, or leaves it as it was. Until then it is beside it, under a name that
// nobody can foresee and that did not exist before. Only a plain file is replaced: no link, folder or device.
class NewFile {
public:
    static Result<NewFile> create(const std::string& path, mode_t mode);

    NewFile(NewFile&& other) noexcept;
    NewFile& operator=(NewFile&&) = delete;
    NewFile(const NewFile&) = delete;
    ~NewFile();  // removes what was not published

    Status append(std::string_view text);
    Status sync();  // what was written is on the disk when this returns
    Status publish();

private:
    NewFile(std::string path, std::string unfinished, int fd);

    std::string path_, unfinished_;
    int fd_;
};

Status write_file(const std::string& path, std::string_view text, mode_t mode = 0600);  // a NewFile with this text
Status sync_files(const std::string& folder);  // the files in it are on the disk when this returns

Status make_directories(const std::string& path);  // missing ones are made for the owner alone

// Moves a folder to a name that must be free (or an empty folder); false when something is there already.
Result<bool> publish_directory(const std::string& from, const std::string& to);

// Removes a file, a link or a folder with all that is in it; links are removed, not followed. Missing is fine.
Status remove_tree(const std::string& path);

// A path that leads to what is open, wherever it is moved and whatever takes its name. `path`, its name, serves where there
// is no /proc.
std::string path_of(int fd, const std::string& path);
std::string shown(const std::string& path);  // such a path as people know it, others as they are

// A folder for this process alone, removed at the end. The lock it holds tells a living owner from a killed one, a mark in
// it a folder made here from any other.
class PrivateDir {
public:
    // <parent>/<prefix> and random digits; the parent must exist.
    static Result<PrivateDir> create(const std::string& parent, std::string_view prefix);
    // Removes those of killed processes, and nothing that was not made here; what cannot be removed stays.
    static void remove_abandoned(const std::string& parent, std::string_view prefix);

    PrivateDir(PrivateDir&& other) noexcept;
    PrivateDir& operator=(PrivateDir&&) = delete;
    PrivateDir(const PrivateDir&) = delete;
    ~PrivateDir();  // does nothing in a forked child

    const std::string& path() const { return path_; }
    std::string inside() const { return path_of(fd_, path_); }  // for what must not end up elsewhere

private:
    PrivateDir(std::string path, int fd);

    std::string path_;
    int fd_;
    pid_t owner_;
};

// An advisory lock on a file, which the system releases however its holder ends.
class FileLock {
public:
    // Nothing when another process still holds it after the time limit.
    static Result<std::optional<FileLock>> acquire(const std::string& path, std::chrono::milliseconds time_limit);

    FileLock(FileLock&& other) noexcept;
    FileLock& operator=(FileLock&&) = delete;
    FileLock(const FileLock&) = delete;
    ~FileLock();  // releases it and removes the file

private:
    FileLock(std::string path, int fd);

    std::string path_;
    int fd_;
    pid_t owner_;
};

}  // namespace tilewise
