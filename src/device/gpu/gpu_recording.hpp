// SPDX-License-Identifier: MIT
// Launches captured in one graph and replayed between two events: what timing on a GPU wants, since the host then has no part in it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "device/device.hpp"
#include "device/gpu/gpu_scope.hpp"

namespace tilewise {

// The stream and the two events that all recordings of a device share, made with the first of them: making them for each
// would take longer than timing a kernel does. One recording is captured or replayed at a time.
template <class Driver>
class RecordingQueue {
public:
    using GraphExec = typename Driver::GraphExec;

    RecordingQueue(const Driver& driver, typename Driver::Context context) : driver_(driver), context_(context) {}
    ~RecordingQueue() {
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        close();
    }
    RecordingQueue(const RecordingQueue&) = delete;
    RecordingQueue& operator=(const RecordingQueue&) = delete;

    Result<GraphExec> capture(const RecordedWork& work, std::int64_t calls) {
        const std::scoped_lock lock(mutex_);
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        auto recorded = record(work, calls);
        if (!recorded) close();  // a stream whose capture has failed may be of no use any more
        return recorded;
    }

    Result<double> replay(GraphExec graph) {  // seconds
        const std::scoped_lock lock(mutex_);
        const ContextScope scope(driver_, context_);
        auto status = open();
        if (status) status = driver_.check(driver_.event_record(begin_, stream_), "EventRecord");
        if (status) status = driver_.check(driver_.graph_launch(graph, stream_), "GraphLaunch");
        if (status) status = driver_.check(driver_.event_record(end_, stream_), "EventRecord");
        if (status) status = driver_.check(driver_.event_synchronize(end_), "EventSynchronize");
        float milliseconds = 0;
        if (status) {
            status = driver_.check(driver_.event_elapsed_time(&milliseconds, begin_, end_), "EventElapsedTime");
        }
        if (!status) return status.error();
        return milliseconds * 1e-3;
    }

    void destroy(GraphExec graph) const {
        const ContextScope scope(driver_, context_);
        const OutsideCapture outside(driver_);
        driver_.graph_exec_destroy(graph);
    }

private:
    Result<GraphExec> record(const RecordedWork& work, std::int64_t calls) {
        auto status = open();
        if (status) {
            status = driver_.check(driver_.stream_begin_capture(stream_, kCaptureThreadLocal), "StreamBeginCapture");
        }
        if (!status) return status.error();
        for (std::int64_t i = 0; i < calls && status; ++i) status = work(stream_, i);
        typename Driver::Graph graph = nullptr;
        GraphExec exec = nullptr;
        const auto ended = driver_.stream_end_capture(stream_, &graph);
        if (status) status = driver_.check(ended, "StreamEndCapture");
        if (status) status = driver_.check(driver_.graph_instantiate(&exec, graph, 0), "GraphInstantiate");
        if (graph) driver_.graph_destroy(graph);
        // Now, not in the first replay, whose time it would be part of; not every driver has it.
        if (status && driver_.graph_upload) {
            status = driver_.check(driver_.graph_upload(exec, stream_), "GraphUpload");
        }
        if (status) status = driver_.check(driver_.stream_synchronize(stream_), "StreamSynchronize");
        if (status) return exec;
        if (exec) driver_.graph_exec_destroy(exec);
        return status.error();
    }

    // A stream of its own: the default one cannot be captured.
    Status open() {
        constexpr unsigned kNonBlockingStream = 1;
        Status status;
        if (!stream_) status = driver_.check(driver_.stream_create(&stream_, kNonBlockingStream), "StreamCreate");
        if (status && !begin_) status = driver_.check(driver_.event_create(&begin_, 0), "EventCreate");
        if (status && !end_) status = driver_.check(driver_.event_create(&end_, 0), "EventCreate");
        return status;
    }
    void close() {
        if (begin_) driver_.event_destroy(begin_);
        if (end_) driver_.event_destroy(end_);
        if (stream_) driver_.stream_destroy(stream_);
        begin_ = end_ = nullptr, stream_ = nullptr;
    }

    const Driver& driver_;
    typename Driver::Context context_;
    std::mutex mutex_;  // guards what follows
    typename Driver::Stream stream_ = nullptr;
    typename Driver::Event begin_ = nullptr, end_ = nullptr;
};

template <class Driver>
class GraphRecording final : public Recording {
public:
    GraphRecording(std::shared_ptr<RecordingQueue<Driver>> queue, typename Driver::GraphExec graph)
        : queue_(std::move(queue)), graph_(graph) {}
    ~GraphRecording() override { queue_->destroy(graph_); }
    GraphRecording(const GraphRecording&) = delete;
    GraphRecording& operator=(const GraphRecording&) = delete;

    Result<double> replay() override { return queue_->replay(graph_); }

private:
    std::shared_ptr<RecordingQueue<Driver>> queue_;
    typename Driver::GraphExec graph_;
};

template <class Driver>
Result<std::unique_ptr<Recording>> record_graph(std::shared_ptr<RecordingQueue<Driver>> queue, const RecordedWork& work,
                                                std::int64_t calls) {
    const auto graph = queue->capture(work, calls);
    if (!graph) return graph.error();
    return std::unique_ptr<Recording>(std::make_unique<GraphRecording<Driver>>(std::move(queue), *graph));
}

}  // namespace tilewise
