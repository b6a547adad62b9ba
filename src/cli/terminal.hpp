// SPDX-License-Identifier: MIT
// The CLI prints these: aligned tables, on a terminal coloured and as wide as it is, plain and in whole lines when piped; how far
// a long command is, on a terminal only. A terminal that calls itself dumb gets no codes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tilewise::cli {

enum class Colour { plain, bold, green, yellow, red, dim };

void use_colour(std::string_view when);  // "auto", "always" or "never"; auto honours NO_COLOR and TERM=dumb
std::string paint(std::string_view text, Colour colour);

void print(std::string_view text);  // to stdout, with a line break
void print_error(std::string_view text);
// A bar on stderr that stands for as long as nothing else is printed; nothing when stderr is no terminal, or a dumb one.
void show_progress(std::size_t done, std::size_t total, std::string_view doing);
bool output_failed();  // flushes; whether anything printed could not be written

class Table {
public:
    explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}

    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    std::string text() const;  // columns two spaces apart; numbers to the right

private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace tilewise::cli
