// SPDX-License-Identifier: MIT
// Files and folders that several processes use at once: whole-file reads and writes, folders that appear in one step,
// private folders that clean up after themselves even after a kill, advisory locks, and the question of whom a folder
// belongs to. Every error names the path and the reason.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace tilewise {

Result<std::string> read_file(const std::string& path);

Status write_file(const std::string& path, std::string_view text);
Status sync_files(const std::string& folder);  // the files in it are on the disk when this returns

Status make_directories(const std::string& path);  // missing ones are made for the owner alone

// Moves a folder to a name that must be free (or an empty folder); false when something is there already.
Result<bool> publish_directory(const std::string& from, const std::string& to);

// Removes a file, a link or a folder with all that is in it; links are removed, not followed. Missing is fine.
Status remove_tree(const std::string& path);

// Whether what is in a folder can be trusted: it is ours, and nobody else may put things there or take them away.
// A missing folder is fine. `allow_sticky`: others may add to it, but not touch what is ours.
Status check_owner(const std::string& path, bool allow_sticky);

// A folder for this process alone, removed at the end. The lock it holds tells a living owner from a killed one.
class PrivateDir {
public:
    // <parent>/<prefix>XXXXXX; the parent must exist.
    static Result<PrivateDir> create(const std::string& parent, std::string_view prefix);
    // Removes those of killed processes; what cannot be removed stays.
    static void remove_abandoned(const std::string& parent, std::string_view prefix);

    PrivateDir(PrivateDir&& other) noexcept;
    PrivateDir& operator=(PrivateDir&&) = delete;
    PrivateDir(const PrivateDir&) = delete;
    ~PrivateDir();  // does nothing in a forked child

    const std::string& path() const { return path_; }

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
