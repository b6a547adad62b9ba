// SPDX-License-Identifier: MIT
// Reading and writing small pieces of text: whole numbers, AxBxC extents, byte counts, lists, and the nearest
// known word for an error message. Every text form of the library is built from these.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewise {

std::optional<std::int64_t> parse_integer(std::string_view text);  // the whole text, no sign but '-'

void append_integer(std::string& out, std::int64_t value);

std::vector<std::string_view> split(std::string_view text, char separator);  // "" gives one empty part
std::string_view trim(std::string_view text);

// The length of the well-formed UTF-8 sequence that starts the text; 0 when there is none.
std::size_t utf8_length(std::string_view text);

// "3x3" <-> {3, 3}; at least one part.
std::optional<std::vector<std::int64_t>> parse_extents(std::string_view text);
std::string print_extents(std::span<const std::int64_t> extents);

// "64M" <-> 67108864; K, M and G are powers of 1024.
std::optional<std::int64_t> parse_bytes(std::string_view text);
std::string print_bytes(std::int64_t bytes);

std::string join(std::span<const std::string_view> words, std::string_view separator);

// The known word closest to `word`, or nothing when none is close enough to be what was meant.
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known);

// "unknown KIND 'WORD'; did you mean 'NEAREST'?" or "…; one of: A, B, C", each word after `prefix`.
std::string unknown_word(std::string_view kind, std::string_view word, std::span<const std::string_view> known,
                         std::string_view prefix = "");

}  // namespace tilewise
