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
    TuningRecord record{from.text("device"),      from.text("problem"), from.text("kernel"),
                        from.text("code_digest"), from.number("us"),    0};
    if (from.has("spread")) record.spread = from.number("spread");
    return from.ok() ? std::optional(record) : std::nullopt;
}

// All of them, or an error with the line that is none; `name` is where they stand.
Result<std::vector<TuningRecord>> parse_records(std::string_view text, const std::string& name) {
    std::vector<TuningRecord> records;
    int number = 0;
    for (const std::string_view line : split(text, '\n')) {
        ++number;
        if (trim(line).empty()) continue;
        auto record = parse_record(line);
        if (!record) return usage_error(fmt::format("'{}', line {}: not a tuning record", name, number));
        records.push_back(std::move(*record));
    }
    return records;
}

}  // namespace

std::string tuning_line(const TuningRecord& r) {
    Json json = Json::object({{"schema", kSchema},
                              {"device", r.device},
                              {"problem", r.problem},
                              {"kernel", r.kernel},
                              {"code_digest", r.code_digest},
                              {"us", r.us}});
    if (r.spread > 0) json.set("spread", r.spread);
    return json.dump();
}

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
    // A leading line break ends whatever a killed process left unfinished.
    auto status = append('\n' + tuning_line(record) + '\n');
    if (status) return status;
    return Error{ErrorCode::check_failed,
                 fmt::format("the tuning result is kept for this process only: {}", status.error().message)};
}

Status TuningDatabase::check_writable() const {
    auto status = append("");
    if (status) return status;
    return Error{ErrorCode::check_failed,
                 fmt::format("tuning results cannot be kept: {}. Name a folder that can be written with "
                             "TILEWISE_CACHE_DIR",
                             status.error().message)};
}

Status TuningDatabase::append(const std::string& text) const {
    if (path_.empty()) {
        return usage_error("no folder for tuning results: none of TILEWISE_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    }
    const auto file = TrustedFile::open_to_append(path_);
    if (!file) return file.error();
    return text.empty() ? Status() : file->append(text, path_);
}

Result<std::size_t> TuningDatabase::load(const std::string& path) {
    const auto text = read_trusted_file(path);
    if (!text) return usage_error(fmt::format("cannot read the tuning records: {}", text.error().message));
    auto records = parse_records(*text, path);
    if (!records) return records.error();
    const std::lock_guard lock(fork_safe_mutex());
    read_once();
    for (TuningRecord& record : *records) records_[key(record.device, record.problem)] = std::move(record);
    return records->size();
}

Status TuningDatabase::add_missing(const std::string& lines, const std::string& name) {
    auto records = parse_records(lines, name);
    if (!records) return records.error();
    const std::lock_guard lock(fork_safe_mutex());
    read_once();
    for (TuningRecord& record : *records) {
        const std::string place = key(record.device, record.problem);
        records_.try_emplace(place, std::move(record));
    }
    return {};
}

std::vector<TuningRecord> TuningDatabase::records() {
    const std::lock_guard lock(fork_safe_mutex());
    read_once();
    std::vector<TuningRecord> all;
    for (const auto& [place, record] : records_) all.push_back(record);
    return all;
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

std::string tuning_path(const BuildSettings& settings) {
    return settings.cache_dir.empty() ? "" : settings.cache_dir + "/tuning.jsonl";
}

}  // namespace tilewise
