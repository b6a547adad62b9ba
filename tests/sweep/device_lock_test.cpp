// SPDX-License-Identifier: MIT
#include "sweep/device_lock.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

namespace tilewise {
namespace {

TEST(DeviceLock, IsOneSweepsAtATimeAndNamesIt) {
    const std::string folder = std::filesystem::temp_directory_path() / ("tilewise-lock-" + std::to_string(getpid()));
    {
        const auto lock = DeviceLock::acquire(folder, "cuda:0", "which writes a.csv");
        ASSERT_TRUE(lock.ok()) << lock.error().message;
        const auto second = DeviceLock::acquire(folder, "cuda:0", "which writes b.csv");
        ASSERT_FALSE(second.ok());
        for (const std::string& told : {std::string("cuda:0"), std::to_string(getpid()), std::string("a.csv")}) {
            EXPECT_NE(second.error().message.find(told), std::string::npos) << second.error().message;
        }
        EXPECT_TRUE(DeviceLock::acquire(folder, "cuda:1", "which writes b.csv").ok());
    }
    EXPECT_TRUE(DeviceLock::acquire(folder, "cuda:0", "which writes b.csv").ok());
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tilewise
