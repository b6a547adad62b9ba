// SPDX-License-Identifier: MIT
#include "sweep/device_lock.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <utility>

#include "base/text.hpp"

namespace tilewise {
namespace {

// "cuda:0" as part of a file's name.
std::string file_word(const std::string& device) {
    std::string word = device;
    std::replace_if(
        word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
    return word;
}

}  // namespace

Result<DeviceLock> DeviceLock::acquire(const std::string& folder, const std::string& device,
                                       const std::string& purpose) {
    if (auto status = make_directories(folder); !status) return status.error();
    const std::string path = fmt::format("{}/sweep-{}.lock", folder, file_word(device)), holder = path + ".holder";
    auto lock = FileLock::acquire(path, std::chrono::milliseconds(100));
    if (!lock) return lock.error();
    if (!lock->has_value()) {
        const auto who = read_file(holder);
        return Error{ErrorCode::device,
                     fmt::format("another sweep is on {}: {}. Two would time each other: wait for it, or end it",
                                 device, who ? trim(*who) : "it has not said which")};
    }
    if (auto status = write_file(holder, fmt::format("process {}, {}\n", getpid(), purpose)); !status) {
        return status.error();
    }
    return DeviceLock(std::move(**lock));
}

}  // namespace tilewise
