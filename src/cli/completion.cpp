// SPDX-License-Identifier: MIT
// tilewise completion: shell completions, written from the tables of commands and options.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/terminal.hpp"

namespace tilewise::cli {
namespace {

std::string words(const std::vector<std::string>& list) {
    const std::vector<std::string_view> views(list.begin(), list.end());
    return join(views, " ");
}

std::vector<Option> options_of(const Command& command) {
    std::vector<Option> all(command.options.begin(), command.options.end());
    const std::vector<Option> global = global_options(command);
    all.insert(all.end(), global.begin(), global.end());
    return all;
}

std::string command_names() {
    std::vector<std::string> names;
    for (const Command& command : commands()) names.emplace_back(command.name);
    return words(names);
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
            text += fmt::format("    --{}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return;;\n", option.name,
                                words(option.choices()));
        }
    }
    text += fmt::format("  esac\n  case \"${{COMP_WORDS[1]}}\" in\n");
    for (const Command& command : commands()) {
        std::vector<std::string> names;
        for (const Option& option : options_of(command)) names.push_back(fmt::format("--{}", option.name));
        if (command.name == "arch") names.push_back(words(arch_choices()));
        if (command.name == "completion") names.emplace_back("bash zsh fish");
        text += fmt::format("    {}) COMPREPLY=($(compgen -f -W \"{}\" -- \"$cur\")); return;;\n", command.name,
                            words(names));
    }
    return text +
           fmt::format("  esac\n  COMPREPLY=($(compgen -W \"{}\" -- \"$cur\"))\n}}\ncomplete -F _tilewise tilewise",
                       command_names());
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
    // zsh reads bash completions once told to.
    if (shell == "zsh") return print("autoload -U +X bashcompinit && bashcompinit\n" + bash_script()), 0;
    if (shell == "fish") return print(fish_script()), 0;
    constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};
    return usage_error(unknown_word("shell", shell, kShells));
}

}  // namespace tilewise::cli
