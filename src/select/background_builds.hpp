// SPDX-License-Identifier: MIT
// Kernels that are compiled and loaded behind the program's back, on one thread that lives while there is work. It ends with the
// process, whose exit kills the compiler rather than wait for it. The child of a fork begins without work.
#pragma once

#include <atomic>
#include <memory>

#include "build/build_settings.hpp"
#include "device/device.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"
#include "run/executable.hpp"

namespace tilewise {

struct BackgroundJob {
    Problem problem;
    KernelPtr kernel;
    std::shared_ptr<Replacement> result;  // stays empty where the kernel cannot be had
};

class BackgroundBuilds {
public:
    // The device must outlive this.
    BackgroundBuilds(Device& device, BuildSettings settings) : device_(device), settings_(std::move(settings)) {}
    ~BackgroundBuilds();
    BackgroundBuilds(const BackgroundBuilds&) = delete;
    BackgroundBuilds& operator=(const BackgroundBuilds&) = delete;

    void add(BackgroundJob job);

private:
    class Worker;

    Device& device_;
    BuildSettings settings_;
    std::shared_ptr<Worker> worker_;  // made with the first job; replaced in the child of a fork, under fork_safe_mutex
};

}  // namespace tilewise
