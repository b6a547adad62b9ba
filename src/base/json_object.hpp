// SPDX-License-Identifier: MIT
// Reads the members of a JSON object one by one, remembering the first thing that is wrong and where. A file is
// read straight through and judged once, at finish(), which also refuses keys nobody asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace tilewise {

class JsonObject {
public:
    // `file` and `path` say where the object is, for messages: "arch/x.json" and "pipelines.mem".
    JsonObject(const Json& json, std::string file, std::string path = {});

    std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max);
    std::int64_t integer_or(std::string_view key, std::int64_t min, std::int64_t max, std::int64_t otherwise);
    double number(std::string_view key);  // above 0: every number of our files is an amount
    std::string text(std::string_view key);
    std::string text_or(std::string_view key, std::string_view otherwise);
    bool flag_or(std::string_view key, bool otherwise);
    std::vector<std::string> texts(std::string_view key);  // an array of strings
    std::vector<std::string> texts_or_none(std::string_view key);
    const Json* child(std::string_view key);          // must be there
    const Json* child_or_null(std::string_view key);  // may be missing
    bool has(std::string_view key) const { return json_.find(key) != nullptr; }

    void fail(std::string_view key, std::string_view what);  // keeps the first failure only
    bool ok() const { return !error_.has_value(); }
    Status finish();

    const std::string& file() const { return file_; }
    std::string path_of(std::string_view key) const;

private:
    const Json* take(std::string_view key);

    const Json& json_;
    std::string file_;
    std::string path_;
    std::vector<std::string> taken_;
    std::optional<Error> error_;
};

}  // namespace tilewise
