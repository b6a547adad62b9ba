// SPDX-License-Identifier: MIT
#include "problem/problem_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

bool has(const ProblemField& field, Op op) { return is_conv(op) ? field.in_conv : field.in_gemm; }

bool is_printed(const ProblemField& field, const Problem& p) {
    return has(field, p.op) && (field.presence != Presence::optional || !field.is_default(p));
}

Error in_field(const GivenField& given, std::string_view what) {
    return usage_error(fmt::format("problem field '{}' ({}): {}", given.key, given.place, what));
}

// A field that takes 0 and 1 and nothing more.
bool is_flag(std::string_view key) {
    Problem scratch;
    for (const ProblemField& field : problem_fields()) {
        if (field.key == key) return field.parse(scratch, "1").ok() && !field.parse(scratch, "2").ok();
    }
    return false;
}

// A packed stride written out is the same problem as one left out.
void make_canonical(Problem& p) {
    if (is_conv(p.op)) return;
    for (int i = 2; i >= 0; --i) {
        const auto at = static_cast<std::size_t>(i);
        if (p.gemm.leading[at] == contiguous_length(p, i)) p.gemm.leading[at] = kPacked;
        const std::int64_t given = p.gemm.batch_stride[at];
        p.gemm.batch_stride[at] = kPacked;
        if (given != batch_stride(p, i)) p.gemm.batch_stride[at] = given;
        if (p.gemm.batch == 1) p.gemm.batch_stride[at] = kPacked;
    }
}

}  // namespace

Result<Problem> problem_from_fields(Op op, const std::vector<GivenField>& given) {
    std::vector<std::string_view> known;
    for (const ProblemField& field : problem_fields()) {
        if (has(field, op)) known.push_back(field.key);
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (std::find(known.begin(), known.end(), given[i].key) == known.end()) {
            return usage_error(fmt::format("{}: {} ({})", name_of(op),
                                           unknown_word("problem field", given[i].key, known), given[i].place));
        }
        for (std::size_t j = 0; j < i; ++j) {
            if (given[j].key == given[i].key) return in_field(given[i], "given twice");
        }
    }

    Problem problem;
    problem.op = op;
    for (const ProblemField& field : problem_fields()) {
        if (!has(field, op)) continue;
        const auto found =
            std::find_if(given.begin(), given.end(), [&](const GivenField& g) { return g.key == field.key; });
        if (found != given.end()) {
            if (auto status = field.parse(problem, found->value); !status)
                return in_field(*found, status.error().message);
        } else if (field.presence == Presence::required) {
            return usage_error(
                fmt::format("{}: problem field '{}' is missing: {}", name_of(op), field.key, field.help));
        }
    }
    if (const auto rejected = check_problem(problem)) {
        return unsupported_error(fmt::format("impossible problem (rule {}): have {}; need {}", rejected->rule,
                                             rejected->have, rejected->need));
    }
    make_canonical(problem);
    return problem;
}

Result<std::vector<GivenField>> split_fields(std::string_view text, std::size_t first_column) {
    std::vector<GivenField> given;
    if (trim(text).empty()) return given;
    for (const std::string_view part : split(text, ',')) {
        const auto column = first_column + static_cast<std::size_t>(part.data() - text.data());
        const std::string place = fmt::format("column {}", column);
        const auto equals = part.find('=');
        if (equals == std::string_view::npos) {
            return usage_error(fmt::format("problem text ({}): '{}' is not key=value", place, part.substr(0, 64)));
        }
        given.push_back({std::string(trim(part.substr(0, equals))), std::string(trim(part.substr(equals + 1))), place});
    }
    return given;
}

Result<Problem> parse_problem(std::string_view text) {
    const std::string_view line = trim(text);
    const auto colon = line.find(':');
    const std::string_view word = line.substr(0, colon);
    auto op = parse_enum<Op>(trim(word));
    if (!op) {
        return usage_error(fmt::format("problem '{}': {}. A problem reads gemm:m=64,n=64,k=64,dtype=fp32,layout=rcr",
                                       line.substr(0, 80), op.error().message));
    }
    if (colon == std::string_view::npos) return problem_from_fields(*op, {});
    const std::string_view fields = line.substr(colon + 1);
    const auto given = split_fields(fields, static_cast<std::size_t>(fields.data() - text.data()) + 1);
    if (!given) return given.error();
    return problem_from_fields(*op, *given);
}

Result<Problem> read_problem(std::string_view text_or_json) {
    if (!trim(text_or_json).starts_with('{')) return parse_problem(text_or_json);
    auto json = Json::parse(text_or_json);
    if (!json) return json.error();
    return problem_from_json(*json);
}

std::string print_problem(const Problem& problem) {
    std::string text(name_of(problem.op));
    char separator = ':';
    for (const ProblemField& field : problem_fields()) {
        if (!is_printed(field, problem)) continue;
        text += separator;
        text += field.key;
        text += '=';
        text += field.print(problem);
        separator = ',';
    }
    return text;
}

Result<std::vector<GivenField>> fields_from_json(const Json& json) {
    const auto* members = json.object();
    if (!members) return usage_error(fmt::format("a problem in JSON is an object, not {}", json.kind()));
    std::vector<GivenField> given;
    for (const auto& [key, value] : *members) {
        GivenField field{key, {}, fmt::format("line {}", value.line())};
        if (const auto* text = value.string()) {
            field.value = *text;
        } else if (const auto* number = value.integer()) {
            field.value = fmt::format("{}", *number);
        } else if (const auto* flag = value.boolean(); flag && is_flag(key)) {
            field.value = fmt::format("{:d}", *flag);
        } else {
            return in_field(field, fmt::format("takes a string or a whole number, not {}", value.kind()));
        }
        given.push_back(std::move(field));
    }
    return given;
}

Result<Problem> problem_from_json(const Json& json) {
    auto given = fields_from_json(json);
    if (!given) return given.error();
    const Json* op_name = json.find("op");
    if (!op_name || !op_name->string()) return usage_error("a problem in JSON has a string \"op\", such as \"gemm\"");
    const auto op = parse_enum<Op>(*op_name->string());
    if (!op) return op.error();
    std::vector<GivenField> fields;
    for (GivenField& field : *given) {
        if (field.key != "op") fields.push_back(std::move(field));
    }
    return problem_from_fields(*op, fields);
}

Json problem_to_json(const Problem& problem) {
    Json json = Json::object({{"op", name_of(problem.op)}});
    for (const ProblemField& field : problem_fields()) {
        if (!is_printed(field, problem)) continue;
        const std::string value = field.print(problem);
        const auto number = parse_integer(value);
        json.set(std::string(field.key), number ? Json(*number) : Json(value));
    }
    return json;
}

}  // namespace tilewise
