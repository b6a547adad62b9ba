// SPDX-License-Identifier: MIT
#include "cli/terminal.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

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

std::size_t terminal_columns() {
    constexpr std::size_t kUsual = 80;
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

// The CLI is done when nobody reads its output any more (`tilewise kernels | head`); SIGPIPE ends it.
void write(std::FILE* stream, std::string_view text) {
    remove_progress();
    std::fwrite(text.data(), 1, text.size(), stream);
    std::fputc('\n', stream);
}

std::size_t width_of(std::string_view text) {  // characters, not bytes: continuation bytes of UTF-8 do not count
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789.,-+%") == std::string_view::npos;
}

}  // namespace

void use_colour(std::string_view when) {
    const char* no_colour = secure_getenv("NO_COLOR");
    const bool wanted = isatty(STDOUT_FILENO) != 0 && !(no_colour && *no_colour);
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
    static const bool is_terminal = isatty(STDERR_FILENO) != 0;
    if (!is_terminal) return;
    constexpr std::size_t kBarWidth = 20;
    const std::size_t filled = total > 0 ? std::min(done, total) * kBarWidth / total : 0;
    std::string line = fmt::format("[{:.<{}}] {} of {}  {}", std::string(filled, '#'), kBarWidth, done, total, doing);
    // A line that reached the last column would be followed by another one, and the bar would walk down the screen.
    line.resize(std::min(line.size(), terminal_columns() - 1));
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
    std::string out;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        std::string line;
        for (std::size_t i = 0; i < rows_[r].size(); ++i) {
            const std::string& cell = rows_[r][i];
            const std::string gap(widths[i] - width_of(cell), ' ');
            line += (right[i] ? gap + cell : cell + gap) + "  ";
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += (r == 0 ? paint(line, Colour::bold) : line) + (r + 1 < rows_.size() ? "\n" : "");
    }
    return out;
}

}  // namespace tilewise::cli
