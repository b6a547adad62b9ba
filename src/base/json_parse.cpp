// SPDX-License-Identifier: MIT
// The JSON reader: strict RFC 8259, no extensions. Duplicate keys and deep nesting are errors, because both are
// mistakes in our files and both are ways to fool a reader.
#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "base/json.hpp"
#include "base/text.hpp"

namespace tilewise {

class JsonParser {
public:
    explicit JsonParser(std::string_view text) : text_(text) {}

    Result<Json> run() {
        Json value;
        if (parse_value(value, 0)) {
            skip_space();
            if (at_ == text_.size()) return value;
            fail("nothing more after the value");
        }
        return *error_;
    }

private:
    static constexpr int kMaxDepth = 64;

    bool fail(std::string_view expected) {
        if (error_) return false;
        std::size_t column = 1;
        for (std::size_t i = at_; i > 0 && text_[i - 1] != '\n'; --i) ++column;
        const std::string found = at_ >= text_.size() ? "the end of the text" : describe(text_[at_]);
        error_ =
            usage_error(fmt::format("JSON line {}, column {}: expected {}, found {}", line_, column, expected, found));
        return false;
    }

    static std::string describe(char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte >= 0x7f ? fmt::format("byte 0x{:02x}", byte) : fmt::format("'{}'", c);
    }

    void skip_space() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') ++line_;
            if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
            ++at_;
        }
    }

    bool take(char c) {
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }

    bool take_word(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }

    bool parse_value(Json& out, int depth) {
        skip_space();
        out.line_ = line_;
        if (depth > kMaxDepth) return fail(fmt::format("at most {} levels of nesting", kMaxDepth));
        if (at_ >= text_.size()) return fail("a value");
        switch (text_[at_]) {
            case '{': return parse_object(out, depth);
            case '[': return parse_array(out, depth);
            case '"': return parse_string(out.value_.emplace<std::string>());
            case 't': return take_word("true") ? (out.value_ = true, true) : fail("true");
            case 'f': return take_word("false") ? (out.value_ = false, true) : fail("false");
            case 'n': return take_word("null") ? (out.value_ = nullptr, true) : fail("null");
            default: return parse_number(out);
        }
    }

    bool parse_object(Json& out, int depth) {
        ++at_;
        auto& members = out.value_.emplace<Json::Object>();
        std::unordered_set<std::string> keys;
        skip_space();
        if (take('}')) return true;
        while (true) {
            skip_space();
            if (at_ >= text_.size() || text_[at_] != '"') return fail("a key in double quotes");
            const std::size_t key_at = at_;
            Json::Member member;
            if (!parse_string(member.first)) return false;
            if (!keys.insert(member.first).second) {
                at_ = key_at;
                return fail(fmt::format("key \"{}\" once only", member.first));
            }
            skip_space();
            if (!take(':')) return fail("':'");
            if (!parse_value(member.second, depth + 1)) return false;
            members.push_back(std::move(member));
            skip_space();
            if (take('}')) return true;
            if (!take(',')) return fail("',' or '}'");
        }
    }

    bool parse_array(Json& out, int depth) {
        ++at_;
        auto& items = out.value_.emplace<Json::Array>();
        skip_space();
        if (take(']')) return true;
        while (true) {
            Json item;
            if (!parse_value(item, depth + 1)) return false;
            items.push_back(std::move(item));
            skip_space();
            if (take(']')) return true;
            if (!take(',')) return fail("',' or ']'");
        }
    }

    bool parse_string(std::string& out) {
        ++at_;
        while (true) {
            if (at_ >= text_.size()) return fail("a closing '\"'");
            const char c = text_[at_];
            if (static_cast<unsigned char>(c) < 0x20) return fail("no control character inside a string");
            const std::size_t length = utf8_length(text_.substr(at_));
            if (length == 0) return fail("well-formed UTF-8");
            if (length > 1) {
                out += text_.substr(at_, length);
                at_ += length;
                continue;
            }
            ++at_;
            if (c == '"') return true;
            if (c != '\\') {
                out += c;
            } else if (!parse_escape(out)) {
                return false;
            }
        }
    }

    bool parse_escape(std::string& out) {
        const char c = at_ < text_.size() ? text_[at_] : '\0';
        constexpr std::string_view kFrom = "\"\\/bfnrt";
        constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
        if (const auto i = kFrom.find(c); c != '\0' && i != std::string_view::npos) {
            out += kTo[i];
            ++at_;
            return true;
        }
        if (c != 'u') return fail("one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
        unsigned point = 0;
        if (!parse_hex4(point)) return false;
        if (point >= 0xd800 && point < 0xe000) {  // UTF-16 surrogates come in pairs, high then low
            unsigned low = 0;
            if (point >= 0xdc00 || !take('\\') || at_ >= text_.size() || text_[at_] != 'u' || !parse_hex4(low) ||
                low < 0xdc00 || low >= 0xe000) {
                return fail("a complete surrogate pair");
            }
            point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        }
        append_utf8(out, point);
        return true;
    }

    bool parse_hex4(unsigned& out) {  // at 'u'
        ++at_;
        const std::string_view digits = text_.substr(at_, 4);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
        if (digits.size() < 4 || error != std::errc{} || end != digits.data() + 4) return fail("four hex digits");
        at_ += 4;
        return true;
    }

    static void append_utf8(std::string& out, unsigned point) {
        const auto byte = [&](unsigned bits) { out += static_cast<char>(bits); };
        if (point < 0x80) {
            byte(point);
        } else if (point < 0x800) {
            byte(0xc0 | point >> 6), byte(0x80 | (point & 0x3f));
        } else if (point < 0x10000) {
            byte(0xe0 | point >> 12), byte(0x80 | ((point >> 6) & 0x3f)), byte(0x80 | (point & 0x3f));
        } else {
            byte(0xf0 | point >> 18), byte(0x80 | ((point >> 12) & 0x3f));
            byte(0x80 | ((point >> 6) & 0x3f)), byte(0x80 | (point & 0x3f));
        }
    }

    std::size_t digits_from(std::size_t at) const {
        std::size_t end = at;
        while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
        return end;
    }

    bool parse_number(Json& out) {
        std::size_t end = at_ + (text_[at_] == '-' ? 1 : 0);
        const std::size_t first = end;
        end = digits_from(end);
        if (end == first) return fail("a value");
        if (text_[first] == '0' && end > first + 1) return fail("no leading zero in a number");
        bool is_integer = true;
        if (end < text_.size() && text_[end] == '.') {
            is_integer = false;
            const std::size_t fraction = end + 1;
            end = digits_from(fraction);
            if (end == fraction) return fail("digits after the decimal point");
        }
        if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            is_integer = false;
            std::size_t exponent = end + 1;
            if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
            end = digits_from(exponent);
            if (end == exponent) return fail("digits in the exponent");
        }
        const char* begin = text_.data() + at_;
        const char* stop = text_.data() + end;
        std::int64_t integer = 0;
        double number = 0;
        if (is_integer && std::from_chars(begin, stop, integer).ec == std::errc{}) {
            out.value_ = integer;
        } else if (std::from_chars(begin, stop, number).ec == std::errc{} && std::isfinite(number)) {
            out.value_ = number;
        } else {
            return fail("a number that fits a double");
        }
        at_ = end;
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int line_ = 1;
    std::optional<Error> error_;
};

Result<Json> Json::parse(std::string_view text) { return JsonParser(text).run(); }

}  // namespace tilewise
