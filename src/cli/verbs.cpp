// SPDX-License-Identifier: MIT
// Commands that are programs of their own, `tilewise-VERB`, for the most part in Python. One is looked for beside this command, in
// the Python package that this command belongs to, then on PATH, and takes the place of this process.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/trust.hpp"
#include "build/toolchain.hpp"
#include "cli/command.hpp"

namespace tilewise::cli {
namespace {

// Where a package lies, seen from the folder of this command, and the interpreter it was installed for.
struct PackagePlace {
    std::string_view parent;
    std::string_view python;
};
constexpr PackagePlace kPackagePlaces[] = {
    {"../..", "../../../../../bin/python3"},      // installed by pip: tilewise/bin, in lib/python3.N/site-packages
    {"../../python", "../../.venv/bin/python3"},  // a checkout: build/bin
};

// Starts the package that argv[1] names; the folder that the user is in is no place for modules.
constexpr std::string_view kStartVerb =
    "import sys; sys.path[:] = [sys.argv.pop(1), *filter(None, sys.path)]; "
    "from tilewise._verbs import main; sys.exit(main(sys.argv[1:]))";

bool is_program(const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// The words that start the verb; none where nothing was found.
std::vector<std::string> find_verb(const std::string& verb, const std::filesystem::path& folder) {
    const std::string name = fmt::format("tilewise-{}", verb);
    if (is_program(folder / name)) return {folder / name};
    for (const PackagePlace& place : kPackagePlaces) {
        std::error_code error;
        const auto parent = std::filesystem::canonical(folder / place.parent, error);
        if (error || !std::filesystem::is_regular_file(parent / "tilewise" / "_verbs.py", error)) continue;
        // An interpreter's own name is kept: the link is what tells it which environment it is of.
        const auto own = (folder / place.python).lexically_normal();
        const auto python = is_program(own) ? std::optional(own.string()) : program_on_path("python3");
        if (python) return {*python, "-c", std::string(kStartVerb), parent, verb};
    }
    if (const auto found = program_on_path(name)) return {*found};
    return {};
}

}  // namespace

Result<int> run_verb(Context& context) {
    const std::string verb(context.arguments.command()->name);
    if (has_raised_rights()) {
        return usage_error(fmt::format("{} starts another program, which a command with raised rights does not", verb));
    }
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    const std::filesystem::path folder = self.parent_path();
    std::vector<std::string> words = find_verb(verb, folder);
    if (words.empty()) {
        return Error{
            ErrorCode::toolchain,
            fmt::format(
                "{0} is a program of the Python package, which was not found: there is no {1}/tilewise-{0}, no package "
                "that this command belongs to, and no tilewise-{0} on PATH; pip install 'tilewise[{2}]' has it",
                verb, folder.string(), context.arguments.command()->extra)};
    }
    for (const std::string& word : context.arguments.operands()) words.push_back(word);
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv.front(), argv.data());
    return Error{ErrorCode::toolchain, fmt::format("cannot start '{}': {}", words.front(), std::strerror(errno))};
}

}  // namespace tilewise::cli
