// SPDX-License-Identifier: MIT
// The database remembers between processes what measuring found to be best: one line of JSON per record, appended and never
// rewritten, so that many processes may add at once and a killed one loses at most its own last line. A record names the
// device, the problem, the kernel and the digest of its code; it counts only where all of them are still the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "build/build_settings.hpp"

namespace tilewise {

struct TuningRecord {
    std::string device;       // Device::identity()
    std::string problem;      // its text
    std::string kernel;       // its name
    std::string code_digest;  // of the binary that was measured
    double us = 0;
    double spread = 0;  // of the times, relative

    bool operator==(const TuningRecord&) const = default;
};

std::string tuning_line(const TuningRecord& record);  // as it stands in a file

class TuningDatabase {
public:
    // Nothing is read before it is needed. An empty path: results are kept for this process only.
    explicit TuningDatabase(std::string path) : path_(std::move(path)) {}

    const std::string& path() const { return path_; }

    std::optional<TuningRecord> find(const std::string& device, const std::string& problem);
    // Whether records can be kept; the error names the path and the way out.
    Status check_writable() const;
    Status add(const TuningRecord& record);  // the newest record of a device and problem is the one that counts
    // Adds the records of another file, for this process only. When a line cannot be read nothing is added. It must be as
    // trustworthy as our own.
    Result<std::size_t> load(const std::string& path);
    // Adds the records that a pack carries (`name` is for messages), for this process only, where there is none for the same device and
    // problem: what was measured here counts more. When a line cannot be read nothing is added.
    Status add_missing(const std::string& lines, const std::string& name);
    std::vector<TuningRecord> records();  // in no order
    // Why our own file is not used: a link, no plain file, or one that others than root and this user may have written.
    std::optional<Error> refused();
    std::size_t size();
    std::size_t unreadable();  // lines that were passed over

private:
    void read_once();
    Status append(const std::string& text) const;
    static std::string key(const std::string& device, const std::string& problem) { return device + '\n' + problem; }

    std::string path_;
    // Under fork_safe_mutex:
    bool was_read_ = false;
    std::size_t unreadable_ = 0;
    std::optional<Error> refused_;
    std::unordered_map<std::string, TuningRecord> records_;
};

// Where the settings have it, beside the cached kernels; empty where they name no place.
std::string tuning_path(const BuildSettings& settings);

}  // namespace tilewise
