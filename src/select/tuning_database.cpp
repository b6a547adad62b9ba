// SPDX-License-Identifier: MIT
#include "select/tuning_database.hpp"

#include <fmt/core.h>
#include <sys/stat.h>

#include <mutex>
#include <vector>

#include "base/fork_safe_mutex.hpp"
#include "base/json_object.hpp"
#include "base/text.hpp"
#include "base/trust.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kSchema = 1;

std::optional<TuningRecord> parse_record(std::string_view line) {
    const auto json = Json::parse(line);
    if (!json) return std::nullopt;
    JsonObject from(*json, "tuning");
    if (!from.ok()) return std::nullopt;
    from.integer("schema", kSchema, kSchema);
    TuningRecord record{from.text("device"), from.text("problem"), from.text("kernel"), from.text("code_digest"),
                        from.number("us")};
    return from.ok() ? std::optional(record) : std::nullopt;
}

std::string print_record(const TuningRecord& r) {
    return Json::object({{"schema", kSchema},
                         {"device", r.device},
                         {"problem", r.problem},
                         {"kernel", r.kernel},
                         {"code_digest", r.code_digest},
                         {"us", r.us}})
        .dump();
}

}  // namespace

void TuningDatabase::read_once() {
    if (was_read_) return;
    was_read_ = true;
    struct stat info {};
    if (path_.empty() || lstat(path_.c_str(), &info) != 0) return;  // nothing was tuned yet
    const auto text = read_trusted_file(path_);
    if (!text) {
        refused_ =
            Error{ErrorCode::check_failed, fmt::format("the tuning results are not used: {}", text.error().message)};
        return;
    }
    for (const std::string_view line : split(*text, '\n')) {
        if (trim(line).empty()) continue;
        if (auto record = parse_record(line)) {
            records_[key(record->device, record->problem)] = std::move(*record);
        } else {
            ++unreadable_;
        }
    }
}

std::optional<TuningRecord> TuningDatabase::find(const std::string& device, const std::string& problem) {
    const std::lock_guard lock(fork_safe_mutex());
    read_once();
    const auto found = records_.find(key(device, problem));
    return found == records_.end() ? std::nullopt : std::optional(found->second);
}

Status TuningDatabase::add(const TuningRecord& record) {
    const std::lock_guard lock(fork_safe_mutex());
    read_once();
    records_[key(record.device, record.problem)] = record;
    auto status = append(record);
    if (status) return status;
    return Error{ErrorCode::check_failed,
                 fmt::format("the tuning result is kept for this process only: {}", status.error().message)};
}

Status TuningDatabase::append(const TuningRecord& record) const {
    if (path_.empty()) {
        return usage_error("no folder for tuning results: none of TILEWISE_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    }
    const auto file = TrustedFile::open_to_append(path_);
    if (!file) return file.error();
    // A leading line break ends whatever a killed process left unfinished.
    return file->append('\n' + print_record(record) + '\n', path_);
}

Result<std::size_t> TuningDatabase::load(const std::string& path) {
    const auto text = read_trusted_file(path);
    if (!text) return usage_error(fmt::format("cannot read the tuning records: {}", text.error().message));
    std::vector<TuningRecord> records;
    int number = 0;
    for (const std::string_view line : split(*text, '\n')) {
        ++number;
        if (trim(line).empty()) continue;
        auto record = parse_record(line);
        if (!record) return usage_error(fmt::format("'{}', line {}: not a tuning record", path, number));
        records.push_back(std::move(*record));
    }
    const std::lock_guard lock(fork_safe_mutex());
    read_once();
    for (TuningRecord& record : records) records_[key(record.device, record.problem)] = std::move(record);
    return records.size();
}

std::optional<Error> TuningDatabase::refused() {
    const std::lock_guard lock(fork_safe_mutex());
    read_once();
    return refused_;
}

std::size_t TuningDatabase::size() {
    const std::lock_guard lock(fork_safe_mutex());
    read_once();
    return records_.size();
}

std::size_t TuningDatabase::unreadable() {
    const std::lock_guard lock(fork_safe_mutex());
    read_once();
    return unreadable_;
}

}  // namespace tilewise
