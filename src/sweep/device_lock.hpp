// SPDX-License-Identifier: MIT
// One sweep on a device at a time: two would time each other. The lock ends with its process, however that ends, and says who
// holds it.
#pragma once

#include <string>

#include "base/files.hpp"
#include "base/result.hpp"

namespace tilewise {

class DeviceLock {
public:
    // In a folder of this user; `purpose` is what another sweep is told of this one.
    static Result<DeviceLock> acquire(const std::string& folder, const std::string& device, const std::string& purpose);

private:
    explicit DeviceLock(FileLock lock) : lock_(std::move(lock)) {}

    FileLock lock_;
};

}  // namespace tilewise
