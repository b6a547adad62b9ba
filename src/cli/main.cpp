// SPDX-License-Identifier: MIT
// The tilewise command: parses the words, runs one subcommand, and turns an error value into a message and an exit
// code. With --json an error is {"error":{"code","message"}} on stdout and the message on stderr all the same.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "device/cpu/host_cpu.hpp"

namespace tilewise::cli {
namespace {

int fail(const Error& error, bool json) {
    const int code = static_cast<int>(error.code);
    if (json) {
        const Json body = Json::object({{"code", code}, {"message", error.message}});
        print(Json::object({{"error", body}}).dump());
    }
    print_error(fmt::format("tilewise: {}", error.message));
    return code;
}

Status add_arch_files(const Arguments& arguments, ArchCatalog& archs) {
    std::vector<std::string> files = arguments.values("arch-file");
    if (const char* variable = secure_getenv("TILEWISE_ARCH_FILE"); variable && *variable) {
        files.insert(files.begin(), variable);
    }
    for (const std::string& file : files) {
        if (auto status = archs.add_file(file); !status) return status;
    }
    return {};
}

int run(int count, char** words) {
    bool json = false;
    for (int i = 1; i < count && std::strcmp(words[i], "--") != 0; ++i)
        json = json || std::strcmp(words[i], "--json") == 0;
    auto arguments = Arguments::parse(count - 1, words + 1);
    if (!arguments) return fail(arguments.error(), json);
    const std::string when = arguments->value("color").value_or("auto");
    if (when != "auto" && when != "always" && when != "never") {
        return fail(usage_error(fmt::format("--color takes auto, always or never, not '{}'", when)), json);
    }
    use_colour(when);
    if (arguments->has("version")) {
        print(json ? Json::object({{"version", version()}}).dump() : fmt::format("tilewise {}", version()));
        return 0;
    }
    const Command* command = arguments->command();
    if (arguments->has("help")) {
        print(command ? help_text(*command) : help_text());
        return 0;
    }
    if (!command) {
        if (json) return fail(usage_error("no command; tilewise --help lists them"), json);
        print_error(help_text());
        return static_cast<int>(ErrorCode::usage);
    }
    auto archs = archs_here();
    if (!archs) return fail(archs.error(), json);
    if (auto status = add_arch_files(*arguments, *archs); !status) return fail(status.error(), json);
    Context context{*arguments, std::move(*archs), json};
    const auto code = command->run(context);
    return code ? *code : fail(code.error(), json);
}

}  // namespace
}  // namespace tilewise::cli

int main(int count, char** words) {
    const int code = tilewise::cli::run(count, words);
    if (!tilewise::cli::output_failed()) return code;
    tilewise::cli::print_error("tilewise: the output could not be written");
    return code != 0 ? code : static_cast<int>(tilewise::ErrorCode::check_failed);
}
