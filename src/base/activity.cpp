// SPDX-License-Identifier: MIT
#include "base/activity.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace tilewise {
namespace {

std::atomic<int> g_verbosity{-1};  // negative: as the environment says

// NVIDIA's ranges, by the library that profilers replace. Loaded only where one has started this process, which it says so.
struct Ranges {
    int (*push)(const char* text) = nullptr;
    int (*pop)() = nullptr;
};
Ranges load_ranges() {
    const char* profiler = secure_getenv("NVTX_INJECTION64_PATH");
    if (!profiler || !*profiler) return {};
    void* library = dlopen("libnvToolsExt.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return {};
    Ranges ranges;
    ranges.push = reinterpret_cast<int (*)(const char*)>(dlsym(library, "nvtxRangePushA"));
    ranges.pop = reinterpret_cast<int (*)()>(dlsym(library, "nvtxRangePop"));
    return ranges.push && ranges.pop ? ranges : Ranges{};
}
const Ranges& ranges() {
    static const Ranges loaded = load_ranges();
    return loaded;
}

int verbosity_of_environment() {
    const char* text = secure_getenv("TILEWISE_VERBOSE");
    if (!text || !*text || std::string_view(text) == "0") return 0;
    return std::string_view(text) == "2" ? 2 : 1;
}

std::string time_text(std::chrono::steady_clock::duration took) {
    const double us = std::chrono::duration<double, std::micro>(took).count();
    if (us < 1e4) return fmt::format("{:.1f} us", us);
    return us < 1e7 ? fmt::format("{:.1f} ms", us / 1e3) : fmt::format("{:.1f} s", us / 1e6);
}

}  // namespace

std::atomic<int> activity_watchers{-1};

int look_for_watchers() {
    const int watchers = verbosity() != Verbosity::silent || ranges().push ? 1 : 0;
    activity_watchers.store(watchers, std::memory_order_relaxed);
    return watchers;
}

Verbosity verbosity() {
    int now = g_verbosity.load(std::memory_order_relaxed);
    if (now < 0) {
        const int said = verbosity_of_environment();
        if (g_verbosity.compare_exchange_strong(now, said)) now = said;
    }
    return static_cast<Verbosity>(now);
}

void set_verbosity(Verbosity verbosity) {
    g_verbosity.store(static_cast<int>(verbosity), std::memory_order_relaxed);
    look_for_watchers();
}

void write_line(std::string_view text) {
    const std::string line = fmt::format("tilewise: {}\n", text);
    static_cast<void>(::write(STDERR_FILENO, line.data(), line.size()) == 0);
}

void Activity::begin(const char* verb, std::string_view what) {
    verb_ = verb;
    what_ = what;
    if (ranges().push) ranges().push(fmt::format("tilewise {} {}", verb, what).c_str());
    began_ = std::chrono::steady_clock::now();
}

void Activity::end() {
    const auto took = std::chrono::steady_clock::now() - began_;
    if (ranges().pop) ranges().pop();
    if (verbosity() == Verbosity::silent) return;
    write_line(fmt::format("{} {}: {} ({})", verb_, what_, outcome_.empty() ? "done" : outcome_, time_text(took)));
}

}  // namespace tilewise
