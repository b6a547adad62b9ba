// SPDX-License-Identifier: MIT
#include "sweep/record_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/files.hpp"
#include "base/text.hpp"
#include "measure/record_csv.hpp"

namespace tilewise {
namespace {

Error cannot(std::string_view what, const std::string& path, int error) {
    return usage_error(fmt::format("cannot {} '{}': {}", what, path, std::strerror(error)));
}

Error other_file(const std::string& path, std::string_view what, std::string_view have, std::string_view need) {
    return usage_error(
        fmt::format("'{}' has records of another {}: have {}; this sweep's is {}. Name another file with "
                    "--out",
                    path, what, have, need));
}

// The whole records of a text: what a killed process may have left behind them is no record.
std::string_view whole_lines(std::string_view text) {
    std::size_t end = 0;
    for (std::size_t next = 0; (next = end_of_record(text, end)) != std::string_view::npos;) end = next;
    return text.substr(0, end);
}

// Another schema has other columns, so that the first cell of the first record says more than its header.
Status check_schema(std::string_view text, const std::string& path) {
    const std::size_t end = end_of_record(text, 0);
    // A header that a killed process left in part is begun again; any other text is somebody's.
    if (end == std::string_view::npos && record_header().starts_with(text)) return {};
    const std::string_view header = trim(text.substr(0, end));
    if (header == record_header()) return {};
    if (end == std::string_view::npos || !header.starts_with("schema,")) {
        return usage_error(fmt::format("'{}' has no records of a sweep: name another file with --out", path));
    }
    const std::string_view first = text.substr(end);
    const std::string_view have = first.substr(0, first.find(','));
    return other_file(path, "schema", have.empty() ? "other columns" : have, fmt::format("{}", kRecordSchema));
}

Status check_same(const std::vector<Record>& records, const std::string& path, const std::string& device,
                  const std::string& set) {
    for (const Record& record : records) {
        if (record.device != device) return other_file(path, "device", record.device, device);
        if (record.set != set) return other_file(path, "problem list", record.set, set);
    }
    return {};
}

Result<int> open_file(const std::string& path, int flags) {
    const int fd = open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY | flags, 0666);
    if (fd < 0) return cannot("write", path, errno);
    struct stat info {};
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return fd;
    close(fd);
    return usage_error(fmt::format("'{}' is no plain file, which records are appended to", path));
}

bool is_left_out(const Record& record) {
    return record.status == RecordStatus::skipped && record.reason.starts_with(kLeftOut);
}

}  // namespace

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      found_(std::move(other.found_)),
      keys_(std::move(other.keys_)) {}

RecordFile::~RecordFile() {
    if (fd_ >= 0) close(fd_);
}

// One write; where it cannot be whole, nothing of it stays.
Status RecordFile::write_whole(const std::string& text) {
    struct stat info {};
    if (fstat(fd_, &info) != 0) return cannot("write", path_, errno);
    const ssize_t written = write(fd_, text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) return {};
    const int error = written < 0 ? errno : ENOSPC;
    static_cast<void>(ftruncate(fd_, info.st_size) == 0);
    return Error{
        ErrorCode::check_failed,
        fmt::format("cannot write '{}': {}. What was measured before is kept: make room and go on with --resume", path_,
                    std::strerror(error))};
}

Status RecordFile::append(const Record& record) {
    if (auto status = write_whole(record_to_csv(record) + '\n'); !status) return status;
    keys_.insert({record.problem, record.kernel_name});
    return {};
}

Result<RecordFile> RecordFile::begin(const std::string& path) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
        return usage_error(fmt::format("'{}' exists: --resume goes on with it; else name another file", path));
    }
    const auto fd = open_file(path, O_CREAT);
    if (!fd) return fd.error();
    RecordFile file(path, *fd);
    if (auto status = file.write_whole(record_header() + '\n'); !status) return status.error();
    return file;
}

Result<RecordFile> RecordFile::resume(const std::string& path, const std::string& device, const std::string& set) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0 && errno == ENOENT) return begin(path);
    const auto text = read_file(path);
    if (!text) return text.error();
    if (auto status = check_schema(*text, path); !status) return status.error();
    const std::string_view whole = whole_lines(*text);
    std::vector<Record> kept;
    std::string lines = record_header() + '\n';
    if (!whole.empty()) {
        auto records = records_from_csv(whole, path);
        if (!records) return records.error();
        if (auto status = check_same(*records, path, device, set); !status) return status.error();
        for (Record& record : *records) {
            if (is_left_out(record)) continue;
            lines += record_to_csv(record) + '\n';
            kept.push_back(std::move(record));
        }
    }
    // In one step, and only where there is anything to drop.
    if (lines != *text) {
        if (auto status = write_file(path, lines, info.st_mode & 0777); !status) return status.error();
    }
    const auto fd = open_file(path, 0);
    if (!fd) return fd.error();
    RecordFile file(path, *fd);
    for (const Record& record : kept) file.keys_.insert({record.problem, record.kernel_name});
    file.found_ = std::move(kept);
    return file;
}

}  // namespace tilewise
