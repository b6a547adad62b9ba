// SPDX-License-Identifier: MIT
// The words of the command line, sorted into options and operands. --name value, --name=value and -- are understood.
// A verb (verbs.cpp) reads its words itself: all of them, also those before its name, are its operands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace tilewise::cli {

struct Command;

class Arguments {
public:
    bool has(std::string_view name) const { return value(name).has_value(); }
    std::optional<std::string> value(std::string_view name) const;  // the last one given; empty text for a flag
    std::vector<std::string> values(std::string_view name) const;   // all of them, in order
    const std::vector<std::string>& operands() const { return operands_; }
    const Command* command() const { return command_; }  // null when none was named

    static Result<Arguments> parse(int count, const char* const* words);

private:
    const Command* command_ = nullptr;
    std::vector<std::pair<std::string, std::string>> options_;
    std::vector<std::string> operands_;
};

}  // namespace tilewise::cli
