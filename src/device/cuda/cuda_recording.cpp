// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_recording.hpp"

#include <utility>

#include "device/cuda/context_scope.hpp"

namespace tilewise {
namespace {

using namespace cuda_driver;

constexpr unsigned kNonBlockingStream = 1;

class GraphRecording final : public Recording {
public:
    GraphRecording(std::shared_ptr<RecordingQueue> queue, CUgraphExec graph)
        : queue_(std::move(queue)), graph_(graph) {}
    ~GraphRecording() override { queue_->destroy(graph_); }
    GraphRecording(const GraphRecording&) = delete;
    GraphRecording& operator=(const GraphRecording&) = delete;

    Result<double> replay() override { return queue_->replay(graph_); }

private:
    std::shared_ptr<RecordingQueue> queue_;
    CUgraphExec graph_;
};

}  // namespace

RecordingQueue::~RecordingQueue() {
    const ContextScope scope(driver_, context_);
    if (begin_) driver_.event_destroy(begin_);
    if (end_) driver_.event_destroy(end_);
    if (stream_) driver_.stream_destroy(stream_);
}

// A stream of its own: the default one cannot be captured.
Status RecordingQueue::open() {
    Status status;
    if (!stream_) status = driver_.check(driver_.stream_create(&stream_, kNonBlockingStream), "cuStreamCreate");
    if (status && !begin_) status = driver_.check(driver_.event_create(&begin_, 0), "cuEventCreate");
    if (status && !end_) status = driver_.check(driver_.event_create(&end_, 0), "cuEventCreate");
    return status;
}

Result<CUgraphExec> RecordingQueue::capture(const RecordedWork& work, std::int64_t calls) {
    const std::scoped_lock lock(mutex_);
    const ContextScope scope(driver_, context_);
    const OutsideCapture outside(driver_);
    auto status = open();
    if (status) {
        status = driver_.check(driver_.stream_begin_capture(stream_, kCaptureThreadLocal), "cuStreamBeginCapture");
    }
    if (!status) return status.error();
    for (std::int64_t i = 0; i < calls && status; ++i) status = work(stream_, i);
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    const auto ended = driver_.stream_end_capture(stream_, &graph);
    if (status) status = driver_.check(ended, "cuStreamEndCapture");
    if (status) status = driver_.check(driver_.graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
    if (graph) driver_.graph_destroy(graph);
    // Now, not in the first replay, whose time it would be part of.
    if (status) status = driver_.check(driver_.graph_upload(exec, stream_), "cuGraphUpload");
    if (status) status = driver_.check(driver_.stream_synchronize(stream_), "cuStreamSynchronize");
    if (status) return exec;
    if (exec) driver_.graph_exec_destroy(exec);
    return status.error();
}

Result<double> RecordingQueue::replay(CUgraphExec graph) {
    const std::scoped_lock lock(mutex_);
    const ContextScope scope(driver_, context_);
    auto status = driver_.check(driver_.event_record(begin_, stream_), "cuEventRecord");
    if (status) status = driver_.check(driver_.graph_launch(graph, stream_), "cuGraphLaunch");
    if (status) status = driver_.check(driver_.event_record(end_, stream_), "cuEventRecord");
    if (status) status = driver_.check(driver_.event_synchronize(end_), "cuEventSynchronize");
    float milliseconds = 0;
    if (status) status = driver_.check(driver_.event_elapsed_time(&milliseconds, begin_, end_), "cuEventElapsedTime");
    if (!status) return status.error();
    return milliseconds * 1e-3;
}

void RecordingQueue::destroy(CUgraphExec graph) const {
    const ContextScope scope(driver_, context_);
    driver_.graph_exec_destroy(graph);
}

Result<std::unique_ptr<Recording>> record_graph(std::shared_ptr<RecordingQueue> queue, const RecordedWork& work,
                                                std::int64_t calls) {
    const auto graph = queue->capture(work, calls);
    if (!graph) return graph.error();
    return std::unique_ptr<Recording>(std::make_unique<GraphRecording>(std::move(queue), *graph));
}

}  // namespace tilewise
