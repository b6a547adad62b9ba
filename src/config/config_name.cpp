// SPDX-License-Identifier: MIT
#include "config/config_name.hpp"

#include <fmt/core.h>

#include "base/sha256.hpp"
#include "base/text.hpp"

namespace tilewise {
namespace {

constexpr std::size_t kIdDigits = 16;  // 64 bits: a collision among a million kernels has odds of 1 in 10^7

constexpr std::array<std::string_view, 4> kOpPrefix = {"gemm", "grouped_conv_fwd", "grouped_conv_bwd_data",
                                                       "grouped_conv_bwd_weight"};

// A GEMM has none; one that says otherwise is not valid, but it still has a name of its own.
bool has_dimensions(const KernelConfig& c) { return is_conv(c.op) || c.ndim != 0; }

// Fields between the operation and the arch, in the order of the name: table order, the leading ones first.
bool is_leading(const ConfigField& field) {
    return field.role == Role::lead && field.name != "op" && field.name != "arch";
}

bool is_number(const ConfigField& field) {
    return field.type == "int" || field.type == "Shape2" || field.type == "Extents";
}

// A truth value is its tag, or no-tag where the default is true; a number follows its tag; a word follows "-".
void print_suffix(const ConfigField& field, const KernelConfig& c, std::string& out) {
    out += '_';
    if (field.type == "bool") {
        std::string value;
        field.print(c, value);
        if (value == "false") out += "no-";
        out += field.tag;
        return;
    }
    out += field.tag;
    if (!is_number(field)) out += '-';
    field.print(c, out);
}

Error bad_name(std::string_view name, std::string_view why) {
    return usage_error(fmt::format("kernel name '{}': {}", name.substr(0, kMaxNameLength), why));
}

// The longest spelling of an enum that starts the text: some names contain the separator.
template <class E>
std::string_view longest_word(std::string_view text) {
    std::string_view best;
    for (const std::string_view word : EnumNames<E>::names) {
        const bool whole = text.size() == word.size() || (text.size() > word.size() && text[word.size()] == '_');
        if (text.starts_with(word) && whole && word.size() > best.size()) best = word;
    }
    return best;
}

// Takes the next '_'-separated part of the name.
std::string_view take_part(std::string_view& rest, std::size_t length) {
    const std::string_view part = rest.substr(0, length);
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    return part;
}

Status parse_leading(KernelConfig& c, std::string_view& rest) {
    for (const ConfigField& field : config_fields()) {
        if (!is_leading(field)) continue;
        if (field.name == "ndim" && !is_conv(c.op) && rest.find_first_of("0123456789") != 0) {
            field.reset(c);
            continue;
        }
        std::size_t word = rest.find('_');
        if (field.name == "pipeline" && !longest_word<Pipeline>(rest).empty())
            word = longest_word<Pipeline>(rest).size();
        std::string_view part = take_part(rest, word);
        if (field.name == "ndim") {
            if (!part.ends_with('d')) return usage_error(fmt::format("expected 1d, 2d or 3d, found '{}'", part));
            part.remove_suffix(1);
        }
        if (auto status = field.parse(c, part); !status) {
            return usage_error(fmt::format("field {}: {}", field.name, status.error().message));
        }
    }
    return {};
}

// Whether a part such as "splitk4" or "math-fast" belongs to the field; if so, parses it.
bool takes_part(const ConfigField& field, std::string_view part, KernelConfig& c, Status& status) {
    if (field.type == "bool") {
        const bool negated = part.starts_with("no-");
        if ((negated ? part.substr(3) : part) != field.tag) return false;
        status = field.parse(c, negated ? "false" : "true");
        return true;
    }
    if (!part.starts_with(field.tag)) return false;
    std::string_view value = part.substr(field.tag.size());
    const bool starts_right = is_number(field) ? value.find_first_of("0123456789") == 0 : value.starts_with('-');
    if (!starts_right) return false;
    if (!is_number(field)) value.remove_prefix(1);
    status = field.parse(c, value);
    return true;
}

Status parse_suffixes(KernelConfig& c, std::string_view rest) {
    std::string_view part = take_part(rest, rest.find('_'));
    for (const ConfigField& field : config_fields()) {
        if (field.role == Role::lead) continue;
        Status status;
        if (part.empty() || !takes_part(field, part, c, status)) {
            field.reset(c);
            continue;
        }
        if (!status) return usage_error(fmt::format("field {}: {}", field.name, status.error().message));
        part = take_part(rest, rest.find('_'));
    }
    if (!part.empty()) {
        return usage_error(fmt::format("'{}' is no field, or out of place", part));
    }
    return {};
}

}  // namespace

std::string kernel_name(const KernelConfig& c) {
    std::string name;
    name.reserve(kMaxNameLength);
    append_kernel_name(c, name);
    return name;
}

void append_kernel_name(const KernelConfig& c, std::string& name) {
    name += kOpPrefix[static_cast<std::size_t>(c.op)];
    for (const ConfigField& field : config_fields()) {
        if (!is_leading(field) || (field.name == "ndim" && !has_dimensions(c))) continue;
        name += '_';
        field.print(c, name);
        if (field.name == "ndim") name += 'd';
    }
    for (const ConfigField& field : config_fields()) {
        if (field.role != Role::lead && !field.is_default(c)) print_suffix(field, c, name);
    }
    name += '@';
    name += c.arch;
}

Result<KernelConfig> parse_kernel_name(std::string_view name) {
    const auto at = name.rfind('@');
    if (at == std::string_view::npos) return bad_name(name, "has no @arch at its end, such as @cpu-avx2");
    KernelConfig c;
    std::string_view rest = name.substr(0, at);
    std::size_t op = kOpPrefix.size();
    for (std::size_t i = 0; i < kOpPrefix.size(); ++i) {
        const std::string_view prefix = kOpPrefix[i];
        if (rest.starts_with(prefix) && rest.substr(prefix.size()).starts_with('_')) op = i;
    }
    if (op == kOpPrefix.size()) return bad_name(name, "begins with none of " + join(kOpPrefix, ", "));
    c.op = static_cast<Op>(op);
    rest.remove_prefix(kOpPrefix[op].size() + 1);
    if (auto status = parse_leading(c, rest); !status) return bad_name(name, status.error().message);
    if (auto status = parse_suffixes(c, rest); !status) return bad_name(name, status.error().message);
    if (auto status = find_field("arch")->parse(c, name.substr(at + 1)); !status) {
        return bad_name(name, status.error().message);
    }
    // One spelling each: a name that would print differently is not the name of this config.
    if (const std::string canonical = kernel_name(c); canonical != name) {
        return bad_name(name, fmt::format("is spelled {}", canonical));
    }
    return c;
}

std::string kernel_id(std::string_view name) { return sha256_hex(name).substr(0, kIdDigits); }

std::string code_id(const KernelConfig& config) {
    KernelConfig code = config;
    for (const ConfigField& field : config_fields()) {
        if (field.mark == Mark::launch) field.reset(code);
    }
    return kernel_id(kernel_name(code));
}

}  // namespace tilewise
