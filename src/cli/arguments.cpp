// SPDX-License-Identifier: MIT
#include "cli/arguments.hpp"

#include <fmt/core.h>

#include "base/text.hpp"
#include "cli/command.hpp"

namespace tilewise::cli {
namespace {

const Option* find_option(const Command* command, std::string_view name) {
    // The command's own come first: for build, --pack is what it writes.
    for (const auto& table : {command ? command->options : std::span<const Option>{}, global_options()}) {
        for (const Option& option : table) {
            if (option.name == name) return &option;
        }
    }
    return nullptr;
}

Error unknown_option(const Command* command, std::string_view name) {
    std::vector<std::string_view> known;
    for (const auto& table : {command ? command->options : std::span<const Option>{}, global_options()}) {
        for (const Option& option : table) known.push_back(option.name);
    }
    for (const Command& other : commands()) {
        if (!command && find_option(&other, name)) {
            return usage_error(
                fmt::format("--{} belongs to a command and follows it: tilewise {} … --{}", name, other.name, name));
        }
    }
    return usage_error(unknown_word("option", name, known, "--"));
}

}  // namespace

std::optional<std::string> Arguments::value(std::string_view name) const {
    for (auto it = options_.rbegin(); it != options_.rend(); ++it) {
        if (it->first == name) return it->second;
    }
    return std::nullopt;
}

std::vector<std::string> Arguments::values(std::string_view name) const {
    std::vector<std::string> all;
    for (const auto& [key, value] : options_) {
        if (key == name) all.push_back(value);
    }
    return all;
}

Result<Arguments> Arguments::parse(int count, const char* const* words) {
    Arguments result;
    bool options_end = false;
    for (int i = 0; i < count; ++i) {
        std::string_view word = words[i];
        if (word == "--" && !options_end) {
            options_end = true;
            continue;
        }
        if (word == "-h") word = "--help";
        if (!options_end && word.starts_with("--")) {
            const auto equals = word.find('=');
            const std::string_view name = word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
            const Option* option = find_option(result.command_, name);
            if (!option) return unknown_option(result.command_, name);
            std::string value;
            if (option->value.empty()) {
                if (equals != std::string_view::npos) return usage_error(fmt::format("--{} takes no value", name));
            } else if (equals != std::string_view::npos) {
                value = word.substr(equals + 1);
            } else if (++i < count) {
                value = words[i];
            } else {
                return usage_error(fmt::format("--{} needs a value: {}", name, option->value));
            }
            result.options_.emplace_back(name, value);
        } else if (!options_end && word.size() > 1 && word.starts_with('-')) {
            return usage_error(fmt::format("unknown option '{}'; options are written --name", word));
        } else if (!result.command_) {
            result.command_ = find_command(word);
            if (!result.command_) return unknown_choice("command", word, command_choices());
            if (result.command_->is_verb()) {
                result.options_.clear();
                result.operands_.assign(words, words + i);
                result.operands_.insert(result.operands_.end(), words + i + 1, words + count);
                return result;
            }
        } else {
            result.operands_.emplace_back(word);
        }
    }
    const Command* command = result.command_;
    const auto given = static_cast<int>(result.operands_.size());
    if (command && !result.has("help") && (given < command->min_operands || given > command->max_operands)) {
        return usage_error(fmt::format("usage: tilewise {}{}{} [options]; {} operand{} given", command->name,
                                       command->operands.empty() ? "" : " ", command->operands, given,
                                       given == 1 ? "" : "s"));
    }
    return result;
}

}  // namespace tilewise::cli
