// SPDX-License-Identifier: MIT
// Records as CSV: a header line with the names of the columns, then one record each. A cell with a comma, a quote or a line break
// is quoted, so that a record may take several lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "measure/record.hpp"

namespace tilewise {

std::string record_header();  // without a line break, as is a record
std::string record_to_csv(const Record& record);
std::string csv_cell(const std::string& text);          // quoted where it must be
Result<Record> record_from_csv(std::string_view line);  // its cells in the order of the header

// All records of a text that begins with a header. Columns may be in another order and further ones between them. An error names
// `path`, line and column.
Result<std::vector<Record>> records_from_csv(std::string_view text, std::string_view path);
Result<std::vector<Record>> read_records(const std::string& path);

// Where the record that begins at `begin` ends, its line break included; npos when it is not whole.
std::size_t end_of_record(std::string_view text, std::size_t begin);

}  // namespace tilewise
