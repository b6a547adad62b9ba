// SPDX-License-Identifier: MIT
// tilewise completion: shell completions, written from the tables of commands and options.
#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/problem_set.hpp"
#include "cli/terminal.hpp"

namespace tilewise::cli {
namespace {

std::string words(const std::vector<std::string>& list) {
    const std::vector<std::string_view> views(list.begin(), list.end());
    return join(views, " ");
}

std::vector<Option> options_of(const Command& command) {
    if (command.is_verb()) return {{"json", "", "print JSON"}, {"help", "", "show help"}};
    std::vector<Option> all(command.options.begin(), command.options.end());
    const std::vector<Option> global = global_options(command);
    all.insert(all.end(), global.begin(), global.end());
    return all;
}

std::string bash_script() {
    std::string text =
        "_tilewise() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
        "  case \"$prev\" in\n";
    std::vector<std::string_view> done;
    for (const Command& command : commands()) {
        for (const Option& option : options_of(command)) {
            if (!option.choices || std::find(done.begin(), done.end(), option.name) != done.end()) continue;
            done.push_back(option.name);
            const bool or_file = option.value.starts_with("FILE|");
            text += fmt::format("    --{}) COMPREPLY=($(compgen {}-W \"{}\" -- \"$cur\")); return;;\n", option.name,
                                or_file ? "-f " : "", words(option.choices()));
        }
    }
    // The command is the first word that is no option: those of every command may stand before it.
    text +=
        "  esac\n  local command word\n  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
        "    case \"$word\" in -*) ;; *) command=$word; break;; esac\n  done\n  case \"$command\" in\n";
    for (const Command& command : commands()) {
        std::vector<std::string> names;
        for (const Option& option : options_of(command)) names.push_back(fmt::format("--{}", option.name));
        if (command.operand_choices) names.push_back(words(command.operand_choices()));
        text += fmt::format("    {}) COMPREPLY=($(compgen {}-W \"{}\" -- \"$cur\")); return;;\n", command.name,
                            command.operand_choices ? "" : "-f ", words(names));
    }
    return text +
           fmt::format("  esac\n  COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))\n}}\ncomplete -F _tilewise tilewise",
                       words(command_choices()));
}

// In single quotes, for fish.
std::string quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return out + "'";
}

std::string fish_script() {
    std::string text = "complete -c tilewise -f\n";
    for (const Command& command : commands()) {
        text += fmt::format("complete -c tilewise -n __fish_use_subcommand -a {} -d {}\n", command.name,
                            quoted(command.summary));
        if (command.operand_choices) {
            text += fmt::format("complete -c tilewise -n '__fish_seen_subcommand_from {}' -a '{}'\n", command.name,
                                words(command.operand_choices()));
        }
        for (const Option& option : options_of(command)) {
            text += fmt::format("complete -c tilewise -n '__fish_seen_subcommand_from {}' -l {} -d {}{}{}\n",
                                command.name, option.name, quoted(option.help), option.value.empty() ? "" : " -r",
                                option.choices ? fmt::format(" -a '{}'", words(option.choices())) : "");
        }
    }
    text.pop_back();
    return text;
}

}  // namespace

Result<int> run_completion(Context& context) {
    const std::string& shell = context.arguments.operands().front();
    if (shell == "bash") return print(bash_script()), 0;
    // zsh reads bash completions once told to; the first line is for a file among its functions.
    if (shell == "zsh")
        return print("#compdef tilewise\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script()), 0;
    if (shell == "fish") return print(fish_script()), 0;
    return unknown_choice("shell", shell, shell_choices());
}

}  // namespace tilewise::cli
