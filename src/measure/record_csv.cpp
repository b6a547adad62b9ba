// SPDX-License-Identifier: MIT
#include "measure/record_csv.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <variant>

#include "base/files.hpp"
#include "base/text.hpp"

namespace tilewise {
namespace {

using RecordField = std::variant<std::string Record::*, double Record::*, std::optional<double> Record::*,
                                 std::int64_t Record::*, RecordStatus Record::*>;
struct RecordColumn {
    std::string_view name;
    RecordField field;
};
constexpr RecordColumn kRecordColumns[] = {
    {"schema", &Record::schema},
    {"set", &Record::set},
    {"network", &Record::network},
    {"device", &Record::device},
    {"chip", &Record::chip},
    {"arch", &Record::arch},
    {"driver", &Record::driver},
    {"clock_mhz", &Record::clock_mhz},
    {"problem", &Record::problem},
    {"kernel_name", &Record::kernel_name},
    {"kernel_id", &Record::kernel_id},
    {"kernel_family", &Record::kernel_family},
    {"code_digest", &Record::code_digest},
    {"status", &Record::status},
    {"reason", &Record::reason},
    {"predicted_us", &Record::predicted_us},
    {"time_us", &Record::time_us},
    {"spread", &Record::spread},
    {"samples", &Record::samples},
    {"time2_us", &Record::time2_us},
    {"max_error", &Record::max_error},
    {"tflops", &Record::tflops},
    {"gbps", &Record::gbps},
    {"roof", &Record::roof},
    {"reference_us", &Record::reference_us},
    {"started", &Record::started},
    {"repro", &Record::repro},
};

// A number that was not measured is an empty cell, which readers of tables take for a missing value.
struct CellOf {
    const Record& record;
    std::string operator()(std::string Record::*field) const { return record.*field; }
    std::string operator()(std::int64_t Record::*field) const { return fmt::format("{}", record.*field); }
    std::string operator()(RecordStatus Record::*field) const { return std::string(name_of(record.*field)); }
    std::string operator()(double Record::*field) const {
        return record.samples == 0 && record.*field == 0 ? "" : fmt::format("{}", record.*field);
    }
    std::string operator()(std::optional<double> Record::*field) const {
        return record.*field ? fmt::format("{}", *(record.*field)) : "";
    }
};

// Sets a field from its cell; returns what is needed instead where the cell is no such value.
class SetFrom {
public:
    SetFrom(Record& into, const std::string& text) : record(into), cell(text) {}

    std::string operator()(std::string Record::*field) const { return record.*field = cell, ""; }
    std::string operator()(std::int64_t Record::*field) const {
        const auto value = parse_integer(cell);
        if (!value || *value < 0) return "a whole number from 0";
        if (field == &Record::schema && *value != kRecordSchema) return fmt::format("schema {}", kRecordSchema);
        return record.*field = *value, "";
    }
    std::string operator()(RecordStatus Record::*field) const {
        const auto value = parse_enum<RecordStatus>(cell);
        if (!value) return fmt::format("one of {}", join(EnumNames<RecordStatus>::names, ", "));
        return record.*field = *value, "";
    }
    std::string operator()(double Record::*field) const {
        const auto value = number();
        const bool is_finite = !value || std::isfinite(*value);
        return is_finite && (value || cell.empty()) ? (record.*field = value.value_or(0), "") : kNumber;
    }
    // An error may be infinite: where a number should be, there was none.
    std::string operator()(std::optional<double> Record::*field) const {
        record.*field = number();
        return record.*field || cell.empty() ? "" : kNumber;
    }

private:
    Record& record;
    const std::string& cell;

    static constexpr const char* kNumber = "a number from 0, or nothing";

    std::optional<double> number() const {
        double value = 0;
        const char* const end = cell.data() + cell.size();
        const auto [stopped, error] = std::from_chars(cell.data(), end, value);
        const bool is_number = error == std::errc() && stopped == end && !std::isnan(value) && value >= 0;
        return is_number ? std::optional(value) : std::nullopt;
    }
};

// The cells of one record, its line break apart; none where quotes are not as they should be.
std::optional<std::vector<std::string>> split_cells(std::string_view line) {
    std::vector<std::string> cells(1);
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == ',') {
            cells.emplace_back();
        } else if (line[i] != '"') {
            cells.back() += line[i];
        } else {
            if (!cells.back().empty()) return std::nullopt;
            for (++i;; ++i) {
                if (i >= line.size()) return std::nullopt;
                if (line[i] == '"' && line.substr(i + 1, 1) != "\"") break;
                if (line[i] == '"') ++i;
                cells.back() += line[i];
            }
            if (i + 1 < line.size() && line[i + 1] != ',') return std::nullopt;
        }
    }
    return cells;
}

// Where in a line the cell of each column is.
using CellOrder = std::vector<std::size_t>;

Result<CellOrder> order_of(const std::vector<std::string>& header) {
    CellOrder order;
    for (const RecordColumn& column : kRecordColumns) {
        const auto found = std::find(header.begin(), header.end(), column.name);
        if (found == header.end()) return usage_error(fmt::format("there is no column {}", column.name));
        order.push_back(static_cast<std::size_t>(found - header.begin()));
    }
    return order;
}

constexpr std::string_view kBadQuotes = "a quote within a cell is not doubled, or a quoted cell has no end";

Result<Record> record_from_cells(std::string_view line, const CellOrder& order, std::size_t count) {
    const auto cells = split_cells(line);
    if (!cells) return usage_error(std::string(kBadQuotes));
    if (cells->size() != count) return usage_error(fmt::format("{} cells; need {}", cells->size(), count));
    Record record;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::string& cell = (*cells)[order[i]];
        const std::string need = std::visit(SetFrom{record, cell}, kRecordColumns[i].field);
        if (need.empty()) continue;
        return usage_error(fmt::format("column {}: have '{}'; need {}", kRecordColumns[i].name, cell, need));
    }
    return record;
}

// A record of a text without its line break, as Unix or Windows writes it.
std::string_view without_break(std::string_view line) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

}  // namespace

std::string record_header() {
    std::string header;
    for (const RecordColumn& column : kRecordColumns) {
        header += fmt::format("{}{}", header.empty() ? "" : ",", column.name);
    }
    return header;
}

std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + '"';
}

std::string record_to_csv(const Record& record) {
    std::string line;
    for (const RecordColumn& column : kRecordColumns) {
        if (&column != kRecordColumns) line += ',';
        line += csv_cell(std::visit(CellOf{record}, column.field));
    }
    return line;
}

Result<Record> record_from_csv(std::string_view line) {
    CellOrder order(std::size(kRecordColumns));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    return record_from_cells(without_break(line), order, order.size());
}

std::size_t end_of_record(std::string_view text, std::size_t begin) {
    bool quoted = false;
    for (std::size_t i = begin; i < text.size(); ++i) {
        if (text[i] == '"') quoted = !quoted;
        if (text[i] == '\n' && !quoted) return i + 1;
    }
    return std::string_view::npos;
}

Result<std::vector<Record>> records_from_csv(std::string_view text, std::string_view path) {
    std::vector<Record> records;
    std::optional<CellOrder> order;
    std::size_t width = 0, line_number = 1;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(end_of_record(text, begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        const auto here = [&](const std::string& message) {
            return usage_error(fmt::format("'{}', line {}: {}", path, line_number, message));
        };
        if (!order) {
            const auto header = split_cells(without_break(line));
            if (!header) return here(std::string(kBadQuotes));
            auto found = order_of(*header);
            if (!found) return here(found.error().message);
            order = std::move(*found);
            width = header->size();
        } else if (!without_break(line).empty()) {
            auto record = record_from_cells(without_break(line), *order, width);
            if (!record) return here(record.error().message);
            records.push_back(std::move(*record));
        }
        line_number += static_cast<std::size_t>(std::count(line.begin(), line.end(), '\n'));
        begin = end;
    }
    if (!order) return usage_error(fmt::format("'{}', line 1: there is no header of records", path));
    return records;
}

Result<std::vector<Record>> read_records(const std::string& path) {
    const auto text = read_file(path);
    if (!text) return text.error();
    return records_from_csv(*text, path);
}

}  // namespace tilewise
