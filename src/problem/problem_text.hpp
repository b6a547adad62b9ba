// SPDX-License-Identifier: MIT
// The text and JSON forms of a problem. One table of fields serves both, and the help: the text is
//   gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr,epilogue=bias+gelu
// and JSON has the same keys and values, whole numbers as numbers. print∘parse is the identity; options at their
// default are omitted. An error names the field and what it takes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "problem/problem.hpp"

namespace tilewise {

enum class Presence {
    required,  // must be given
    shown,     // has a default, but is always printed so that the text says the whole shape
    optional,  // omitted at its default
};

struct ProblemField {
    std::string_view key;
    bool in_gemm;
    bool in_conv;
    Presence presence;
    std::string_view help;
    Status (*parse)(Problem&, std::string_view);
    std::string (*print)(const Problem&);
    bool (*is_default)(const Problem&);
};
std::span<const ProblemField> problem_fields();

Result<Problem> parse_problem(std::string_view text);  // parsed and checked
std::string print_problem(const Problem& problem);

// A field and its value. The value is read by its own field's parser and by nothing else, whatever characters it has.
struct GivenField {
    std::string key;
    std::string value;
    std::string place;  // "column 6", "line 3", "tilewise_gemm": for the message
};
// Parsed and checked; a field given twice is an error.
Result<Problem> problem_from_fields(Op op, const std::vector<GivenField>& given);
// "key=value,key=value"; the first character is at this column of what the caller was given.
Result<std::vector<GivenField>> split_fields(std::string_view text, std::size_t first_column = 1);
Result<std::vector<GivenField>> fields_from_json(const Json& json);  // {"key": value}

// Either form: JSON begins with a brace.
Result<Problem> read_problem(std::string_view text_or_json);

Result<Problem> problem_from_json(const Json& json);
Json problem_to_json(const Problem& problem);

}  // namespace tilewise
