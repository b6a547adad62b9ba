// SPDX-License-Identifier: MIT
// Tells who asks what the library does: one line for each choice, build, load and run, with its time and reason, on standard error
// (TILEWISE_VERBOSE, set_verbosity); and ranges for an NVIDIA profiler that has started this process. Nobody asks by default: then an
// activity costs one look at a number, and nothing is printed.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

namespace tilewise {

// silent: nothing. lines: one for each activity. details: more lines about choices.
enum class Verbosity : int { silent = 0, lines = 1, details = 2 };

void set_verbosity(Verbosity verbosity);  // what the environment says counts until this is called
Verbosity verbosity();

// One line of text to standard error, in one piece whatever other threads write.
void write_line(std::string_view text);

class Activity {
public:
    // "choose", "build", "load" or "run"; `what` must outlive the activity.
    Activity(const char* verb, std::string_view what) {
        if (is_watched()) begin(verb, what);
    }
    ~Activity() {
        if (verb_) end();
    }
    Activity(const Activity&) = delete;
    Activity& operator=(const Activity&) = delete;

    // Whether anyone is listening, so that `outcome` is worth making.
    bool is_told() const { return verb_ != nullptr; }
    void tell(std::string outcome) { outcome_ = std::move(outcome); }

private:
    static bool is_watched();
    void begin(const char* verb, std::string_view what);
    void end();

    const char* verb_ = nullptr;  // null: nobody listens
    std::string_view what_;
    std::string outcome_;
    std::chrono::steady_clock::time_point began_;
};

// Whether an activity is told to anyone: unset until the environment was looked at.
extern std::atomic<int> activity_watchers;
int look_for_watchers();

inline bool Activity::is_watched() {
    const int watchers = activity_watchers.load(std::memory_order_relaxed);
    return (watchers < 0 ? look_for_watchers() : watchers) != 0;
}

}  // namespace tilewise
