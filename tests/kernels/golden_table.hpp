// SPDX-License-Identifier: MIT
// A table that a probe kernel found on a real GPU, and its text form in tests/golden/cuda: a line that says what is in it,
// then rows "key: value value ...", all in hexadecimal, values of one width.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/text.hpp"

namespace tilewise {

struct GoldenTable {
    std::string meaning;  // one line
    int digits = 4;       // of a value
    std::vector<std::uint32_t> keys;
    std::vector<std::vector<std::uint32_t>> rows;

    bool operator==(const GoldenTable&) const = default;

    std::uint32_t at(int row, int column) const {
        return rows.at(static_cast<std::size_t>(row)).at(static_cast<std::size_t>(column));
    }
};

inline std::string golden_file(std::string_view folder, std::string_view name) {
    return fmt::format("{}/{}.txt", folder, name);
}

inline std::string print_golden(const GoldenTable& table) {
    std::string text = fmt::format("# {}\n", table.meaning);
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        text += fmt::format("{:02x}:", table.keys[i]);
        for (const std::uint32_t value : table.rows[i]) text += fmt::format(" {:0{}x}", value, table.digits);
        text += '\n';
    }
    return text;
}

inline Result<std::uint32_t> parse_hex(std::string_view word) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::uint32_t value = 0;
    for (const char digit : word) {
        const auto at = kDigits.find(digit);
        if (at == kDigits.npos || word.size() > 8) return usage_error(fmt::format("'{}' is no hex", word));
        value = value << 4 | static_cast<std::uint32_t>(at);
    }
    return value;
}

inline Result<GoldenTable> parse_golden(std::string_view text) {
    const auto lines = split(text, '\n');
    if (!lines[0].starts_with("# ")) return usage_error("the first line says what is in the table: # ...");
    GoldenTable table;
    table.meaning = lines[0].substr(2);
    for (std::size_t i = 1; i < lines.size(); ++i) {
        if (lines[i].empty()) continue;
        const auto colon = lines[i].find(": ");
        if (colon == lines[i].npos) return usage_error(fmt::format("line {} has no key", i + 1));
        std::vector<std::uint32_t> row;
        const auto key = parse_hex(lines[i].substr(0, colon));
        if (!key) return key.error();
        for (const std::string_view word : split(lines[i].substr(colon + 2), ' ')) {
            const auto value = parse_hex(word);
            if (!value) return value.error();
            table.digits = static_cast<int>(word.size());
            row.push_back(*value);
        }
        table.keys.push_back(*key);
        table.rows.push_back(std::move(row));
    }
    return table;
}

inline Result<GoldenTable> read_golden(std::string_view folder, std::string_view name) {
    const auto text = read_file(golden_file(folder, name));
    if (!text) return text.error();
    return parse_golden(*text);
}

}  // namespace tilewise
