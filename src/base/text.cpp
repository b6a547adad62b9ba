// SPDX-License-Identifier: MIT
#include "base/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace tilewise {

std::optional<std::int64_t> parse_integer(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

void append_integer(std::string& out, std::int64_t value) {
    char digits[24];  // the longest has 20 characters
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const auto at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
    if (first >= 0xe0 && first < 0xf0) {
        const bool overlong = first == 0xe0 && byte(1) < 0xa0, surrogate = first == 0xed && byte(1) >= 0xa0;
        return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
    }
    if (first >= 0xf0 && first < 0xf5) {
        const bool overlong = first == 0xf0 && byte(1) < 0x90, beyond = first == 0xf4 && byte(1) >= 0x90;
        return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
    }
    return 0;
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const auto first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<std::vector<std::int64_t>> parse_extents(std::string_view text) {
    std::vector<std::int64_t> extents;
    for (const std::string_view part : split(text, 'x')) {
        const auto value = parse_integer(part);
        if (!value) return std::nullopt;
        extents.push_back(*value);
    }
    return extents;
}

std::string print_extents(std::span<const std::int64_t> extents) {
    std::string text;
    for (const std::int64_t extent : extents) {
        if (!text.empty()) text += 'x';
        append_integer(text, extent);
    }
    return text;
}

namespace {
struct Unit {
    char suffix;
    int shift;
};
constexpr Unit kUnits[] = {{'G', 30}, {'M', 20}, {'K', 10}};
}  // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
    int shift = 0;
    for (const Unit& unit : kUnits) {
        if (!text.empty() && text.back() == unit.suffix) {
            shift = unit.shift;
            text.remove_suffix(1);
            break;
        }
    }
    const auto value = parse_integer(text);
    if (!value || *value < 0 || *value > std::numeric_limits<std::int64_t>::max() >> shift) return std::nullopt;
    return *value << shift;
}

std::string print_bytes(std::int64_t bytes) {
    for (const Unit& unit : kUnits) {
        if (bytes != 0 && bytes % (std::int64_t{1} << unit.shift) == 0) {
            return fmt::format("{}{}", bytes >> unit.shift, unit.suffix);
        }
    }
    return fmt::format("{}", bytes);
}

std::string join(std::span<const std::string_view> words, std::string_view separator) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) text += separator;
        text += words[i];
    }
    return text;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

constexpr std::size_t kLongestGuessed = 64;  // nobody mistypes a longer word, and the distance is quadratic

}  // namespace

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known) {
    if (word.empty() || word.size() > kLongestGuessed) return std::nullopt;
    std::optional<std::string_view> best;
    std::size_t best_distance = word.size() / 3 + 2;  // beyond a third of the word it is another word
    for (const std::string_view candidate : known) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < best_distance && distance < candidate.size()) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string unknown_word(std::string_view kind, std::string_view word, std::span<const std::string_view> known,
                         std::string_view prefix) {
    const std::string start = fmt::format("unknown {} '{}{}'", kind, prefix, word.substr(0, kLongestGuessed));
    if (const auto guess = nearest(word, known)) return fmt::format("{}; did you mean '{}{}'?", start, prefix, *guess);
    std::string list;
    for (const std::string_view candidate : known)
        list += fmt::format("{}{}{}", list.empty() ? "" : ", ", prefix, candidate);
    return fmt::format("{}; one of: {}", start, list);
}

}  // namespace tilewise
