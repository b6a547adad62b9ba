// SPDX-License-Identifier: MIT
// The text and JSON forms of a problem. One table of fields serves both, and the help: the text is
//   gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr,epilogue=bias+gelu
// and JSON has the same keys and values, whole numbers as numbers. print∘parse is the identity; options at their
// default are omitted. An error names the field and what it takes.
#pragma once

#include <span>
#include <string>
#include <string_view>

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

// Either form: JSON begins with a brace.
Result<Problem> read_problem(std::string_view text_or_json);

Result<Problem> problem_from_json(const Json& json);
Json problem_to_json(const Problem& problem);

}  // namespace tilewise
