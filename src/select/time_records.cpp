// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "select/fit_prices.hpp"

namespace tilewise {
namespace {

// The rows of a table in RFC 4180: fields in quotes may have commas, line ends and doubled quotes.
std::vector<std::vector<std::string>> rows_of(std::string_view text) {
    std::vector<std::vector<std::string>> rows(1);
    std::string field;
    bool quoted = false;
    const auto end_field = [&] { rows.back().push_back(std::move(field)), field.clear(); };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c != '"') {
                field += c;
            } else if (i + 1 < text.size() && text[i + 1] == '"') {
                field += text[++i];
            } else {
                quoted = false;
            }
        } else if (c == '"') {
            quoted = true;
        } else if (c == ',') {
            end_field();
        } else if (c == '\n') {
            end_field(), rows.emplace_back();
        } else if (c != '\r') {
            field += c;
        }
    }
    if (!field.empty() || !rows.back().empty()) end_field();
    std::erase_if(rows, [](const auto& row) { return row.empty() || (row.size() == 1 && row.front().empty()); });
    return rows;
}

double time_of(const std::string& text) {
    double us = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), us);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && std::isfinite(us) ? us : 0;
}

}  // namespace

Result<TimeRecords> read_time_records(std::string_view text, const std::string& file) {
    const auto rows = rows_of(text);
    if (rows.empty()) return usage_error(fmt::format("{}: has no header", file));
    std::array<std::size_t, 4> column{};
    constexpr std::array<std::string_view, 4> kColumns = {"problem", "kernel_name", "time_us", "status"};
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
        const auto found = std::find(rows.front().begin(), rows.front().end(), kColumns[i]);
        if (found == rows.front().end()) {
            return usage_error(fmt::format("{}: the header has no column {}", file, kColumns[i]));
        }
        column[i] = static_cast<std::size_t>(found - rows.front().begin());
    }
    TimeRecords all;
    for (std::size_t i = 1; i < rows.size(); ++i) {
        const auto& row = rows[i];
        const bool is_whole = row.size() == rows.front().size();
        const double us = is_whole && row[column[3]] == "ok" ? time_of(row[column[2]]) : 0;
        if (us > 0) {
            all.records.push_back({row[column[0]], row[column[1]], us});
        } else {
            ++all.left_out;
        }
    }
    return all;
}

}  // namespace tilewise
