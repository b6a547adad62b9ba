// SPDX-License-Identifier: MIT
// A vendor's driver is loaded and started when it is first asked for, and once. What it has opened does not survive a fork, so that a
// child of the process that started it gets an error instead.
#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include <mutex>
#include <optional>
#include <string_view>

#include "base/fork_safe_mutex.hpp"
#include "base/result.hpp"
#include "device/device_error.hpp"

namespace tilewise {

inline Error after_fork(std::string_view driver) {
    return device_error(fmt::format(
        "{} was started before this process was forked and cannot be used here; start the workers before the "
        "first use of the GPU, or by spawning instead of forking",
        driver));
}

template <class Driver>
Result<const Driver*> start_once(Result<Driver> (*load)()) {
    static std::optional<Driver> driver;
    static pid_t owner = 0;
    {
        const std::scoped_lock lock(fork_safe_mutex());
        if (driver && owner != getpid()) return after_fork(Driver::kName);
        if (driver) return &*driver;
    }
    // Without the lock, which a fork waits for: starting a driver may take seconds, and twice does no harm.
    auto loaded = load();
    if (!loaded) return loaded.error();
    const std::scoped_lock lock(fork_safe_mutex());
    if (!driver) {
        driver = *loaded;
        owner = getpid();
    }
    return &*driver;
}

}  // namespace tilewise
