// SPDX-License-Identifier: MIT
// The arguments of an example: --name value. Every example has --help, --device, --arch and --threads.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tilewise/tilewise.hpp"

namespace example {

struct Option {
    std::string name, value, help;  // value: the default; "" with `is_flag`
    bool is_flag = false;
};

class Arguments {
public:
    // Ends the program on --help (0) and on what is not understood (2).
    Arguments(int argc, char** argv, std::string about, std::vector<Option> options) : options_(std::move(options)) {
        options_.push_back({"device", "cpu", "cpu, cuda:0, ..."});
        options_.push_back({"arch", "", "the arch to choose kernels for, such as cpu-generic; that of the device"});
        options_.push_back({"threads", "0", "of the CPU; 0: all"});
        for (const Option& option : options_) values_[option.name] = option.value;
        for (int i = 1; i < argc; ++i) {
            const std::string word = argv[i];
            if (word == "--help" || word == "-h") {
                show_help(about);
                std::exit(0);
            }
            const Option* option = find(word);
            if (!option || (!option->is_flag && i + 1 == argc)) {
                std::fprintf(stderr, "%s: not an option, or it needs a value; --help lists them\n", word.c_str());
                std::exit(2);
            }
            values_[option->name] = option->is_flag ? "1" : argv[++i];
        }
    }

    const std::string& text(const std::string& name) const { return values_.at(name); }
    long number(const std::string& name) const {
        char* end = nullptr;
        const std::string& value = text(name);
        const long number = std::strtol(value.c_str(), &end, 10);
        if (value.empty() || *end != '\0' || number < 0) {
            std::fprintf(stderr, "--%s takes a whole number, not '%s'\n", name.c_str(), value.c_str());
            std::exit(2);
        }
        return number;
    }
    bool has(const std::string& flag) const { return text(flag) == "1"; }

    tilewise::Result<tilewise::Device> open_device() const {
        tilewise::DeviceOptions options;
        options.arch = text("arch");
        options.threads = static_cast<int>(number("threads"));
        return tilewise::Device::open(text("device"), options);
    }

private:
    const Option* find(const std::string& word) const {
        for (const Option& option : options_) {
            if (word == "--" + option.name) return &option;
        }
        return nullptr;
    }
    void show_help(const std::string& about) const {
        std::printf("%s\n\n", about.c_str());
        for (const Option& option : options_) {
            const std::string given = option.value.empty() ? "" : " (" + option.value + ")";
            std::printf("  --%-12s %s%s\n", option.name.c_str(), option.help.c_str(), given.c_str());
        }
        std::printf("  --%-12s %s\n", "help", "this text");
    }

    std::vector<Option> options_;
    std::map<std::string, std::string> values_;
};

// The value, or the end of the program with the error.
template <class T>
T need(tilewise::Result<T> result, const char* what) {
    if (result) return std::move(result).value();
    std::fprintf(stderr, "%s: %s\n", what, result.error().message.c_str());
    std::exit(1);
}
inline void need(const tilewise::Status& status, const char* what) {
    if (status) return;
    std::fprintf(stderr, "%s: %s\n", what, status.error().message.c_str());
    std::exit(1);
}

}  // namespace example
