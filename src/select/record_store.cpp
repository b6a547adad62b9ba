// SPDX-License-Identifier: MIT
#include "select/record_store.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/files.hpp"
#include "measure/record_csv.hpp"

namespace tilewise {
namespace {

constexpr auto kLockLimit = std::chrono::seconds(2);

std::string header_line() { return record_header() + '\n'; }

// Both ask an open file that is not empty.
bool begins_with_header(const TrustedFile& file) {
    std::string begin(header_line().size(), '\0');
    return pread(file.fd(), begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) &&
           begin == header_line();
}
bool ends_with_break(const TrustedFile& file) {
    char last = '\0';
    return pread(file.fd(), &last, 1, file.info().st_size - 1) == 1 && last == '\n';
}

// To append records to. A file with the columns of another version is set aside: nothing is mixed, and nothing lost.
Result<TrustedFile> open_records(const std::string& path) {
    {
        auto file = TrustedFile::open_to_append(path);
        if (!file || file->info().st_size == 0 || begins_with_header(*file)) return file;
    }
    const std::string aside = path + ".old";
    if (rename(path.c_str(), aside.c_str()) != 0) {
        return usage_error(fmt::format(
            "'{}' has other columns than these records and cannot be renamed to '{}'; move it away", path, aside));
    }
    return TrustedFile::open_to_append(path);
}

// The whole records of a text that begins with a header; a killed process may have left the last one unfinished.
std::string_view whole_records(std::string_view text) {
    text.remove_prefix(std::min(text.size(), header_line().size()));
    std::size_t end = 0;
    for (std::size_t next = 0; (next = end_of_record(text, end)) != std::string_view::npos;) end = next;
    return text.substr(0, end);
}

// The newest of these records, in at most so many bytes.
std::string_view newest(std::string_view records, std::size_t most_bytes) {
    while (records.size() > most_bytes) records.remove_prefix(end_of_record(records, 0));
    return records;
}

}  // namespace

Status RecordStore::append(std::span<const Record> records) const {
    if (max_bytes_ == 0 || records.empty()) return {};
    std::string lines;
    for (const Record& record : records) lines += record_to_csv(record) + '\n';
    auto status = append_lines(lines);
    if (status) return status;
    return Error{ErrorCode::check_failed, fmt::format("the measurements are not recorded: {}", status.error().message)};
}

Status RecordStore::append_lines(const std::string& lines) const {
    if (path_.empty()) {
        return usage_error("no folder for records: none of TILEWISE_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    }
    if (auto status = make_directories(std::filesystem::path(path_).parent_path()); !status) return status;
    const auto lock = FileLock::acquire(path_ + ".lock", kLockLimit);
    if (!lock) return lock.error();
    if (!lock->has_value()) return usage_error(fmt::format("another process keeps '{}.lock' locked", path_));
    const auto file = open_records(path_);
    if (!file) return file.error();
    const std::int64_t bytes = file->info().st_size;
    const bool is_new = bytes == 0;
    const std::string added = (is_new ? header_line() : "") + lines;
    const bool fits = bytes + static_cast<std::int64_t>(added.size()) <= max_bytes_;
    if (!fits || (!is_new && !ends_with_break(*file))) return rewrite(*file, lines);
    auto status = file->append(added, path_);
    // Half a record would spoil those that follow. Where the end cannot be cut off either, the next append does it.
    if (!status) static_cast<void>(ftruncate(file->fd(), bytes) == 0);
    return status;
}

Status RecordStore::rewrite(const TrustedFile& old, const std::string& lines) const {
    const auto text = read_open_file(old.fd(), path_);
    if (!text) return text.error();
    const std::string records = std::string(whole_records(*text)) + lines;
    const bool fits = static_cast<std::int64_t>(header_line().size() + records.size()) <= max_bytes_;
    const auto kept = newest(records, static_cast<std::size_t>(fits ? max_bytes_ : max_bytes_ / 2));
    return write_file(path_, header_line() + std::string(kept));
}

Result<RecordStore::Size> RecordStore::size() const {
    struct stat info {};
    if (path_.empty() || lstat(path_.c_str(), &info) != 0) return Size{};
    const auto text = read_trusted_file(path_);
    if (!text) return text.error();
    Size size{0, static_cast<std::int64_t>(text->size())};
    for (std::string_view rest = whole_records(*text); !rest.empty(); ++size.records) {
        rest.remove_prefix(end_of_record(rest, 0));
    }
    return size;
}

RecordStore record_store(const BuildSettings& settings) {
    return {settings.cache_dir.empty() ? "" : settings.cache_dir + "/records.csv", settings.records_max_bytes};
}

}  // namespace tilewise
