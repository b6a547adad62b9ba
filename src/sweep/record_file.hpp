// SPDX-License-Identifier: MIT
// The file that a sweep writes: a header, then one record after the other, each by one append. Whatever ends the sweep leaves whole
// records, and at most one torn line, which going on drops.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "measure/record.hpp"

namespace tilewise {

// The beginning of the reason of what a sweep had no time for: going on measures it.
inline constexpr std::string_view kLeftOut = "left out: ";

class RecordFile {
public:
    // Makes a file that must not exist yet.
    static Result<RecordFile> begin(const std::string& path);
    // Goes on with a file of the same device and problems, or begins a missing one.
    static Result<RecordFile> resume(const std::string& path, const std::string& device, const std::string& set);

    RecordFile(RecordFile&& other) noexcept;
    RecordFile& operator=(RecordFile&&) = delete;
    RecordFile(const RecordFile&) = delete;
    ~RecordFile();

    Status append(const Record& record);

    // Those that were there before.
    const std::vector<Record>& found() const { return found_; }
    bool has(const std::string& problem, const std::string& kernel) const { return keys_.contains({problem, kernel}); }

private:
    RecordFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
    Status write_whole(const std::string& text);

    std::string path_;
    int fd_;
    std::vector<Record> found_;
    std::set<std::pair<std::string, std::string>> keys_;
};

}  // namespace tilewise
