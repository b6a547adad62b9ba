// SPDX-License-Identifier: MIT
// A folder of this process's own, for targets that read files; gone at the end.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "fuzz.hpp"

class ScratchFolder {
public:
    ScratchFolder() : path_(std::filesystem::temp_directory_path() / "tilewise-fuzz-XXXXXX") {
        std::string name = path_;
        require(mkdtemp(name.data()) != nullptr, "there is a place for files");
        path_ = name;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;

    const std::string& path() const { return path_.native(); }
    // The folder belongs to the process's user, and nobody else may write to it.
    std::string write(const std::string& name, std::string_view contents) const {
        const std::filesystem::path file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary | std::ios::trunc) << contents;
        require(chmod(file.c_str(), 0600) == 0, "a file can be kept to oneself");
        return file;
    }

private:
    std::filesystem::path path_;
};
