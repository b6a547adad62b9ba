// SPDX-License-Identifier: MIT
#include "problem/problem_ranges.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/text.hpp"

namespace tilewise {
namespace {

constexpr std::size_t kMostProblems = 10000;

Error bad_range(std::string_view text, std::string_view need) {
    return usage_error(fmt::format("the range '{}' is not {}", text.substr(0, 64), need));
}

// "64:4096*2" -> 64, 128, ...; none where the text is no range.
Result<std::optional<std::vector<std::int64_t>>> read_range(std::string_view text) {
    using Values = std::optional<std::vector<std::int64_t>>;
    const auto colon = text.find(':'), sign = text.find_first_of("*+");
    if (colon == std::string_view::npos || sign == std::string_view::npos || sign < colon) return Values();
    const auto first = parse_integer(text.substr(0, colon)),
               last = parse_integer(text.substr(colon + 1, sign - colon - 1)),
               step = parse_integer(text.substr(sign + 1));
    if (!first || !last || !step) return bad_range(text, "FIRST:LAST*FACTOR or FIRST:LAST+STEP in whole numbers");
    const bool factor = text[sign] == '*';
    if (*first < 1 || *last < *first || *step < (factor ? 2 : 1)) {
        return bad_range(text, "from 1 on, upwards, with a factor of 2 or more or a step of 1 or more");
    }
    std::vector<std::int64_t> values;
    for (std::int64_t value = *first; value <= *last;) {
        values.push_back(value);
        if (values.size() > kMostProblems) return bad_range(text, fmt::format("of at most {} numbers", kMostProblems));
        if (factor ? __builtin_mul_overflow(value, *step, &value) : __builtin_add_overflow(value, *step, &value)) break;
    }
    return Values(std::move(values));
}

}  // namespace

Result<std::vector<std::string>> expand_ranges(std::string_view text) {
    const auto op = text.find(':');
    if (op == std::string_view::npos || trim(text).starts_with('{')) return std::vector<std::string>{std::string(text)};
    std::vector<std::string> texts = {std::string(text.substr(0, op + 1))};
    bool is_first = true;
    for (const std::string_view field : split(text.substr(op + 1), ',')) {
        const auto equals = field.find('=');
        const bool has_value = equals != std::string_view::npos;
        auto values = read_range(has_value ? field.substr(equals + 1) : std::string_view());
        if (!values) return values.error();
        const std::string comma = std::exchange(is_first, false) ? "" : ",";
        if (!*values) {
            for (std::string& one : texts) one += fmt::format("{}{}", comma, field);
            continue;
        }
        if (texts.size() * (*values)->size() > kMostProblems) {
            return bad_range(text, fmt::format("of at most {} problems", kMostProblems));
        }
        std::vector<std::string> longer;
        for (const std::string& one : texts) {
            for (const std::int64_t value : **values) {
                longer.push_back(fmt::format("{}{}{}={}", one, comma, field.substr(0, equals), value));
            }
        }
        texts = std::move(longer);
    }
    return texts;
}

}  // namespace tilewise
