// SPDX-License-Identifier: MIT
// Launches captured in one graph and replayed between two events: what timing on a GPU wants, since the host then has no part in it.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "device/gpu/gpu_scope.hpp"

namespace tilewise {

template <class Driver>
class GraphRecording final : public Recording {
public:
    GraphRecording(const Driver& driver, typename Driver::Context context) : driver_(driver), context_(context) {}
    ~GraphRecording() override {
        const ContextScope scope(driver_, context_);
        if (begin_) driver_.event_destroy(begin_);
        if (end_) driver_.event_destroy(end_);
        if (exec_) driver_.graph_exec_destroy(exec_);
        if (stream_) driver_.stream_destroy(stream_);
    }
    GraphRecording(const GraphRecording&) = delete;
    GraphRecording& operator=(const GraphRecording&) = delete;

    Status capture(const RecordedWork& work, std::int64_t calls) {
        constexpr unsigned kNonBlockingStream = 1;
        // A stream of its own: the default one cannot be captured.
        auto status = driver_.check(driver_.stream_create(&stream_, kNonBlockingStream), "StreamCreate");
        if (status) {
            status = driver_.check(driver_.stream_begin_capture(stream_, kCaptureThreadLocal), "StreamBeginCapture");
        }
        if (!status) return status;
        for (std::int64_t i = 0; i < calls && status; ++i) status = work(stream_, i);
        typename Driver::Graph graph = nullptr;
        const auto ended = driver_.stream_end_capture(stream_, &graph);
        if (status) status = driver_.check(ended, "StreamEndCapture");
        if (status) status = driver_.check(driver_.graph_instantiate(&exec_, graph, 0), "GraphInstantiate");
        if (graph) driver_.graph_destroy(graph);
        // Now, not in the first replay, whose time it would be part of; not every driver has it.
        if (status && driver_.graph_upload) {
            status = driver_.check(driver_.graph_upload(exec_, stream_), "GraphUpload");
        }
        if (status) status = driver_.check(driver_.stream_synchronize(stream_), "StreamSynchronize");
        if (status) status = driver_.check(driver_.event_create(&begin_, 0), "EventCreate");
        if (status) status = driver_.check(driver_.event_create(&end_, 0), "EventCreate");
        return status;
    }

    Result<double> replay() override {
        const ContextScope scope(driver_, context_);
        auto status = driver_.check(driver_.event_record(begin_, stream_), "EventRecord");
        if (status) status = driver_.check(driver_.graph_launch(exec_, stream_), "GraphLaunch");
        if (status) status = driver_.check(driver_.event_record(end_, stream_), "EventRecord");
        if (status) status = driver_.check(driver_.event_synchronize(end_), "EventSynchronize");
        float milliseconds = 0;
        if (status) {
            status = driver_.check(driver_.event_elapsed_time(&milliseconds, begin_, end_), "EventElapsedTime");
        }
        if (!status) return status.error();
        return milliseconds * 1e-3;
    }

private:
    const Driver& driver_;
    typename Driver::Context context_;
    typename Driver::Stream stream_ = nullptr;
    typename Driver::GraphExec exec_ = nullptr;
    typename Driver::Event begin_ = nullptr, end_ = nullptr;
};

template <class Driver>
Result<std::unique_ptr<Recording>> record_graph(const Driver& driver, typename Driver::Context context,
                                                const RecordedWork& work, std::int64_t calls) {
    const ContextScope scope(driver, context);
    const OutsideCapture outside(driver);
    auto recording = std::make_unique<GraphRecording<Driver>>(driver, context);
    if (auto status = recording->capture(work, calls); !status) return status.error();
    return std::unique_ptr<Recording>(std::move(recording));
}

}  // namespace tilewise
