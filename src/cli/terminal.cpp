// SPDX-License-Identifier: MIT
#include "cli/terminal.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tilewise::cli {
namespace {

bool g_colour = false;
bool g_progress = false;  // whether a bar stands on the last line of the terminal

void remove_progress() {
    if (!g_progress) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    g_progress = false;
}

std::size_t terminal_columns(int fd) {
    constexpr std::size_t kUsual = 80;
    winsize size{};
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

// Whether it is a terminal that knows the codes for colours and for moving about.
bool is_capable_terminal(int fd) {
    const char* kind = secure_getenv("TERM");
    return isatty(fd) != 0 && !(kind && std::string_view(kind) == "dumb");
}

// The CLI is done when nobody reads its output any more (`tilewise kernels | head`); SIGPIPE ends it.
void write(std::FILE* stream, std::string_view text) {
    remove_progress();
    std::fwrite(text.data(), 1, text.size(), stream);
    std::fputc('\n', stream);
}

// The bytes of the first character as a terminal shows it: the continuation bytes of UTF-8, and codes for colours, come with it.
std::size_t character_bytes(std::string_view text) {
    std::size_t i = text.starts_with("\033[") ? std::min(text.find('m'), text.size() - 1) + 1 : 1;
    while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) ++i;
    return i;
}

std::size_t width_of(std::string_view text) {
    std::size_t width = 0;
    while (!text.empty()) {
        if (text.front() != '\033') ++width;
        text.remove_prefix(character_bytes(text));
    }
    return width;
}

// The lines of a cell in a column of that width: broken at spaces, and within a word where that is longer.
std::vector<std::string> wrapped(std::string_view cell, std::size_t width) {
    std::vector<std::string> lines;
    while (width_of(cell) > width) {
        std::size_t end = 0, space = 0;
        for (std::size_t i = 0; i < width; ++i) {
            end += character_bytes(cell.substr(end));
            if (cell[end] == ' ') space = end;
        }
        lines.emplace_back(cell.substr(0, space > 0 ? space : end));
        cell.remove_prefix(space > 0 ? space + 1 : end);
    }
    lines.emplace_back(cell);
    return lines;
}

// Takes from the widest columns until a line fits.
void narrow(std::vector<std::size_t>& widths, std::size_t columns) {
    constexpr std::size_t kGap = 2, kNarrowest = 12;
    std::size_t line = kGap * (widths.size() - 1);
    for (const std::size_t width : widths) line += width;
    for (; line > columns; --line) {
        auto widest = std::max_element(widths.begin(), widths.end());
        if (*widest <= kNarrowest) return;
        --*widest;
    }
}

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789.,-+%") == std::string_view::npos;
}

}  // namespace

void use_colour(std::string_view when) {
    const char* no_colour = secure_getenv("NO_COLOR");
    const bool wanted = is_capable_terminal(STDOUT_FILENO) && !(no_colour && *no_colour);
    g_colour = when == "always" || (when == "auto" && wanted);
}

std::string paint(std::string_view text, Colour colour) {
    constexpr const char* kCodes[] = {"", "1", "32", "33", "31", "2"};
    if (!g_colour || colour == Colour::plain) return std::string(text);
    return std::string("\033[") + kCodes[static_cast<int>(colour)] + "m" + std::string(text) + "\033[0m";
}

void print(std::string_view text) { write(stdout, text); }
void print_error(std::string_view text) {
    std::fflush(stdout);
    write(stderr, text);
}

void show_progress(std::size_t done, std::size_t total, std::string_view doing) {
    static const bool shows_bars = is_capable_terminal(STDERR_FILENO);
    if (!shows_bars) return;
    constexpr std::size_t kBarWidth = 20;
    const std::size_t filled = total > 0 ? std::min(done, total) * kBarWidth / total : 0;
    std::string line = fmt::format("[{:.<{}}] {} of {}  {}", std::string(filled, '#'), kBarWidth, done, total, doing);
    // A line that reached the last column would be followed by another one, and the bar would walk down the screen.
    line.resize(std::min(line.size(), terminal_columns(STDERR_FILENO) - 1));
    std::fprintf(stderr, "\r%s\033[K", line.c_str());
    std::fflush(stderr);
    g_progress = true;
}

bool output_failed() { return std::fflush(stdout) != 0 || std::ferror(stdout) != 0; }

std::string Table::text() const {
    std::vector<std::size_t> widths(rows_.front().size());
    std::vector<bool> right(widths.size(), rows_.size() > 1);  // a column of numbers, its heading with it
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        for (std::size_t i = 0; i < rows_[r].size(); ++i) {
            widths[i] = std::max(widths[i], width_of(rows_[r][i]));
            if (r > 0 && !is_number(rows_[r][i])) right[i] = false;
        }
    }
    if (isatty(STDOUT_FILENO) != 0) narrow(widths, terminal_columns(STDOUT_FILENO));
    std::string out;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        std::vector<std::vector<std::string>> cells;
        std::size_t lines = 0;
        for (std::size_t i = 0; i < rows_[r].size(); ++i) {
            cells.push_back(wrapped(rows_[r][i], widths[i]));
            lines = std::max(lines, cells.back().size());
        }
        for (std::size_t l = 0; l < lines; ++l) {
            std::string line;
            for (std::size_t i = 0; i < cells.size(); ++i) {
                const std::string cell = l < cells[i].size() ? cells[i][l] : "";
                const std::string gap(widths[i] - width_of(cell), ' ');
                line += (right[i] ? gap + cell : cell + gap) + "  ";
            }
            line.erase(line.find_last_not_of(' ') + 1);
            out += (out.empty() ? "" : "\n") + (r == 0 ? paint(line, Colour::bold) : line);
        }
    }
    return out;
}

}  // namespace tilewise::cli
