// SPDX-License-Identifier: MIT
// A libhiprtc that is none: behind the functions of AMD's it runs clang, and it fails as its variables say.
//   FAKE_HIPRTC_ARCHS=gfx90a,gfx942   the archs it knows; else all
//   FAKE_HIPRTC_OLD=1                 does not know --hiprtc-no-builtin-header, as before ROCm 6.3
//   FAKE_HIPRTC_JUNK=1                what it gives for code is none
//   FAKE_HIPRTC_LOG=FILE              gets the options of each compilation, one a line
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

enum class Result : int { success = 0, invalid_option = 5, compilation = 6 };

struct Program {
    std::vector<std::pair<std::string, std::string>> files;  // names and texts, the source first
    std::string log, code;
};

constexpr std::string_view kArch = "--offload-arch=", kNoHeader = "--hiprtc-no-builtin-header";

std::string_view variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

// hiprtc gives words to its compiler as they are; here a shell is between.
std::string quoted(std::string_view word) { return "'" + std::string(word) + "'"; }

// With what hiprtc adds itself. Words that kernels define, too, are in its header.
std::string command_line(const std::string& folder, std::string_view options, bool has_header) {
    std::string line = "clang++-22 -x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -O3 ";
    if (has_header) {
        std::ofstream(folder + "/runtime.h") << "#define __launch_bounds__(n) __attribute__((unused))\n"
                                                "#define __noinline__\n"
                                                "inline float tanhf(float x) { return x; }\n";
        line += "-D__HIPCC_RTC__ -include " + folder + "/runtime.h ";
    }
    return line + std::string(options) + "-I " + folder + " " + folder + "/source.cpp -o " + folder + "/code >" +
           folder + "/log 2>&1";
}

Result fail(Program& program, Result result, const std::string& why) {
    program.log = why;
    return result;
}

Result compile(Program& program, const std::string& options, bool has_header) {
    if (!variable("FAKE_HIPRTC_JUNK").empty()) {
        program.code = "junk";
        return Result::success;
    }
    std::string folder = "/tmp/fake-hiprtc-XXXXXX";
    if (!mkdtemp(folder.data())) return Result::compilation;
    for (const auto& [name, text] : program.files) {
        fs::create_directories(fs::path(folder + "/" + name).parent_path());
        std::ofstream(folder + "/" + name) << text;
    }
    const bool done = std::system(command_line(folder, options, has_header).c_str()) == 0;
    program.log = content(folder + "/log");
    program.code = content(folder + "/code");
    fs::remove_all(folder);
    return done ? Result::success : Result::compilation;
}

}  // namespace

extern "C" {

const char* hiprtcGetErrorString(Result result) {
    if (result == Result::invalid_option) return "HIPRTC_ERROR_INVALID_OPTION";
    return result == Result::success ? "HIPRTC_SUCCESS" : "HIPRTC_ERROR_COMPILATION";
}

Result hiprtcVersion(int* major, int* minor) {
    *major = 9, *minor = 0;
    return Result::success;
}

Result hiprtcCreateProgram(Program** program, const char* source, const char* name, int headers,
                           const char* const* texts, const char* const* names) {
    *program = new Program{{{name, source}}, {}, {}};
    for (int i = 0; i < headers; ++i) (*program)->files.emplace_back(names[i], texts[i]);
    return Result::success;
}

Result hiprtcDestroyProgram(Program** program) {
    delete *program;
    *program = nullptr;
    return Result::success;
}

Result hiprtcCompileProgram(Program* program, int count, const char* const* options) {
    std::string line, archs = "," + std::string(variable("FAKE_HIPRTC_ARCHS")) + ",";
    bool has_header = true;
    for (int i = 0; i < count; ++i) {
        const std::string_view option = options[i];
        if (option.starts_with(kArch) && archs != ",," &&
            archs.find("," + std::string(option.substr(kArch.size())) + ",") == std::string::npos) {
            return fail(*program, Result::compilation, "error: invalid target ID");
        }
        if (option == kNoHeader && !variable("FAKE_HIPRTC_OLD").empty()) {
            return fail(*program, Result::compilation, "error: unknown argument: " + std::string(option));
        }
        if (option == kNoHeader)
            has_header = false;
        else
            line += quoted(option) + " ";
    }
    if (const auto log = variable("FAKE_HIPRTC_LOG"); !log.empty()) {
        std::ofstream(std::string(log), std::ios::app) << (has_header ? "" : kNoHeader) << " " << line << "\n";
    }
    return compile(*program, line, has_header);
}

Result hiprtcGetProgramLogSize(Program* program, std::size_t* size) {
    *size = program->log.size();
    return Result::success;
}

Result hiprtcGetProgramLog(Program* program, char* log) {
    std::memcpy(log, program->log.data(), program->log.size());
    return Result::success;
}

Result hiprtcGetCodeSize(Program* program, std::size_t* size) {
    *size = program->code.size();
    return Result::success;
}

Result hiprtcGetCode(Program* program, char* code) {
    std::memcpy(code, program->code.data(), program->code.size());
    return Result::success;
}

}  // extern "C"
