// SPDX-License-Identifier: MIT
// One compilation in a folder of its own: headers and source are written out, the toolchain of the request's kind runs,
// what it built is checked, its manifest written. The result depends on the request and the compiler only, not on where
// or when. A kind of code is a line of the table in compile.cpp; what compiles it is a file compile_*.cpp with a Compiler.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "build/build_request.hpp"
#include "build/build_settings.hpp"
#include "build/manifest.hpp"
#include "build/toolchain.hpp"

namespace tilewise {

struct CompileJob {
    const BuildRequest& request;
    std::string digest;
    const Toolchain& toolchain;
    std::chrono::milliseconds time_limit;
    const std::atomic<bool>* stop = nullptr;  // ends the compiler once it is true, if that can be ended
    const KernelHeaders& headers = KernelHeaders::embedded();
};

struct CompileFault {
    bool storage = false;  // the folder cannot take the files; the same may work elsewhere
    std::string message;   // what happened, the command and the log
};

struct CompilerRun {
    std::string failure;  // how it ended, when it did not end well
    std::string log;
    std::optional<KernelResources> resources;
};

// One way to compile: how its toolchain is found and run. The command line has the compiler's path first; a run with that in the
// folder `work` leaves the object file. An error: it could not be run at all.
struct Compiler {
    std::string_view name;     // as people look for it
    std::string_view way_out;  // where there is no toolchain
    bool reads_headers;        // from files
    Result<Toolchain> (*find)(const BuildSettings&, std::string_view suffix);
    std::vector<std::string> (*command)(const CompileJob&, const std::string& work);
    Result<CompilerRun> (*run)(const CompileJob&, const std::string& work);
};
extern const Compiler kHostCompiler, kNvrtcCompiler, kAmdCompiler;
// Null where nothing here builds that suffix.
const Compiler* compiler_of(std::string_view suffix);

// Finds what compiles requests with this suffix here. The error also says the way out.
Result<Toolchain> find_toolchain(std::string_view suffix, const BuildSettings& settings);

// In `folder` (absolute, empty) appears work/entry with kernel, source and manifest; work also has the headers,
// where the compiler reads files or has failed, and after a failure the command and the log.
std::variant<Manifest, CompileFault> compile_kernel(const CompileJob& job, const std::string& folder);

// --- for compile_*.cpp ---

constexpr std::string_view kSourceFile = "entry/source.cpp";  // under work
std::string object_file(const BuildRequest& request);         // the same

// Runs a compiler that is a program, in the folder `work`.
Result<CompilerRun> run_program(const std::vector<std::string>& argv, const CompileJob& job, const std::string& work);

}  // namespace tilewise
