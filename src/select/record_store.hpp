// SPDX-License-Identifier: MIT
// Every measurement made here, kept between processes: one CSV file (measure/record_csv.hpp) that is appended to, whole records
// at a time, and loses its older half when it is full. It may be written by many processes at once. Only a file that this user
// or root owns and nobody else may write is touched.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/trust.hpp"
#include "build/build_settings.hpp"
#include "measure/record.hpp"

namespace tilewise {

class RecordStore {
public:
    // An empty path: there is nowhere to keep records. max_bytes 0: none are wanted.
    RecordStore(std::string path, std::int64_t max_bytes) : path_(std::move(path)), max_bytes_(max_bytes) {}

    const std::string& path() const { return path_; }
    std::int64_t max_bytes() const { return max_bytes_; }

    // All of them or, with an error, none. Nothing is read before, unless the file is full or was left damaged.
    Status append(std::span<const Record> records) const;

    struct Size {
        std::int64_t records = 0, bytes = 0;
    };
    Result<Size> size() const;  // a missing file has none

private:
    Status append_lines(const std::string& lines) const;
    Status rewrite(const TrustedFile& old, const std::string& lines) const;

    std::string path_;
    std::int64_t max_bytes_;
};

// The store beside the tuning results, with the limit of the environment.
RecordStore record_store(const BuildSettings& settings);

}  // namespace tilewise
