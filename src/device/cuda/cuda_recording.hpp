// SPDX-License-Identifier: MIT
// Launches captured in one CUDA graph and replayed between two events: what timing on a GPU wants, since the host then has no
// part in it.
#pragma once

#include <memory>
#include <mutex>

#include "device/cuda/driver.hpp"
#include "device/device.hpp"

namespace tilewise {

// The stream and the two events that all recordings of a device share, made with the first of them: making them for each
// would take longer than timing a kernel does. One recording is captured or replayed at a time.
class RecordingQueue {
public:
    RecordingQueue(const cuda_driver::Driver& driver, cuda_driver::CUcontext context)
        : driver_(driver), context_(context) {}
    ~RecordingQueue();
    RecordingQueue(const RecordingQueue&) = delete;
    RecordingQueue& operator=(const RecordingQueue&) = delete;

    Result<cuda_driver::CUgraphExec> capture(const RecordedWork& work, std::int64_t calls);
    Result<double> replay(cuda_driver::CUgraphExec graph);  // seconds
    void destroy(cuda_driver::CUgraphExec graph) const;

private:
    Status open();

    const cuda_driver::Driver& driver_;
    cuda_driver::CUcontext context_;
    std::mutex mutex_;  // guards what follows
    cuda_driver::CUstream stream_ = nullptr;
    cuda_driver::CUevent begin_ = nullptr, end_ = nullptr;
};

Result<std::unique_ptr<Recording>> record_graph(std::shared_ptr<RecordingQueue> queue, const RecordedWork& work,
                                                std::int64_t calls);

}  // namespace tilewise
