// SPDX-License-Identifier: MIT
#include "cli/manual.hpp"

#include <fmt/core.h>

#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/variables.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::cli {
namespace {

// A backslash, a dash, and a dot or quote at the beginning of a line mean something to troff.
std::string troff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            out += c;
        }
    }
    return out;
}

std::string entry(const std::string& title, std::string_view text) {
    return fmt::format(".TP\n{}\n{}\n", title, troff(text));
}

std::string option_entry(const Option& option) {
    return entry(fmt::format("\\fB\\-\\-{}\\fR{}{}", troff(option.name), option.value.empty() ? "" : " ",
                             option.value.empty() ? "" : fmt::format("\\fI{}\\fR", troff(option.value))),
                 option.help);
}

Json option_json(const Option& option) {
    return Json::object({{"name", option.name}, {"value", option.value}, {"help", option.help}});
}

Json options_json(std::span<const Option> options) {
    Json list(Json::Array{});
    for (const Option& option : options) list.push_back(option_json(option));
    return list;
}

}  // namespace

std::string manual_page() {
    std::string text = fmt::format(
        ".TH TILEWISE 1 \"\" \"tilewise {}\" \"User Commands\"\n.SH NAME\ntilewise \\- select, build and run tile "
        "kernels for matrix products and grouped convolutions\n.SH SYNOPSIS\n.B tilewise\n\\fICOMMAND\\fR "
        "[\\fIoperands\\fR] [\\fIoptions\\fR]\n.SH COMMANDS\n",
        version());
    for (const Command& command : commands()) {
        text += fmt::format(".SS {} {}\n{}.\n", troff(command.name), troff(command.operands), troff(command.summary));
        if (!command.details.empty()) text += fmt::format(".PP\n{}\n", troff(command.details));
        for (const Option& option : command.options) text += option_entry(option);
    }
    text += ".SH OPTIONS OF EVERY COMMAND\n";
    for (const Option& option : global_options()) text += option_entry(option);
    text += ".SH ENVIRONMENT\n";
    for (const Variable& variable : variables()) {
        text += entry(fmt::format("\\fB{}\\fR", troff(variable.name)), variable.help);
    }
    return text +
           ".SH EXIT STATUS\n0: ok. 1: a check failed. 2: usage. 3: the problem is not supported. 4: the toolchain "
           "failed. 5: the device failed.";
}

Json commands_json() {
    Json list(Json::Array{});
    for (const Command& command : commands()) {
        list.push_back(Json::object({{"name", command.name},
                                     {"operands", command.operands},
                                     {"summary", command.summary},
                                     {"details", command.details},
                                     {"extra", command.extra},
                                     {"options", options_json(command.options)}}));
    }
    Json environment(Json::Array{});
    for (const Variable& variable : variables()) {
        environment.push_back(Json::object({{"name", variable.name}, {"help", variable.help}}));
    }
    Json fields(Json::Array{});
    for (const ProblemField& field : problem_fields()) {
        fields.push_back(Json::object({{"name", field.key},
                                       {"gemm", field.in_gemm},
                                       {"conv", field.in_conv},
                                       {"required", field.presence == Presence::required},
                                       {"help", field.help}}));
    }
    return Json::object({{"commands", list},
                         {"options", options_json(global_options())},
                         {"environment", environment},
                         {"problem_fields", fields}});
}

}  // namespace tilewise::cli
