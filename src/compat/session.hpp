// SPDX-License-Identifier: MIT
// A session stands behind the original functions: a context, the kernels to choose from, and the kernel used last. It is a
// client of tilewise.h like any other, so each of the thin libraries has a session of its own. One call at a time: whoever
// uses it holds its mutex.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "compat/settings.hpp"
#include "tilewise/tilewise.h"

namespace tilewise::compat {

// The original functions return these.
inline constexpr int kOk = 0, kError = -1, kNoKernel = -2, kFailed = -3;

struct Buffers {
    const void* a = nullptr;
    const void* b = nullptr;
    void* c = nullptr;
};

class Session {
public:
    // `ops`: the operations whose kernels are listed.
    explicit Session(std::vector<std::string> ops) : ops_(std::move(ops)) {}

    std::mutex& mutex() { return mutex_; }

    int open();  // idempotent
    void close();
    bool is_open() const { return context_ != nullptr; }
    int configure(const char* name, const char* value);
    const Settings& settings() const { return settings_; }

    std::int64_t count() const { return tilewise_registry_size(registry_); }
    std::int64_t count(const std::string& op) const;  // of one operation
    std::string name_at(std::int64_t index) const;    // "" outside
    std::string export_json() const;                  // as the original wrote it
    // A kernel's name as the original would have it: its kernels have a layout, so one for any layout is named by that of the
    // settings, in which it runs.
    std::string original_name(const std::string& kernel) const;

    // The name of the kernel for a problem's text; "" when there is none.
    std::string select(const std::string& problem, int split_k = 1);
    const std::string& kernel() const { return kernel_; }  // the one selected last

    // Runs on memory of the device, and waits. Milliseconds, or one of the codes above.
    double run(const std::string& problem, const Buffers& buffers, void* stream, int split_k = 1);
    // Runs on host memory, through copies where the device does not share it.
    double run_on_host(const std::string& problem, const Buffers& host, int split_k = 1);
    // An emulated GPU has no runtime of a vendor that gives its memory to a client.
    bool is_emulated() const { return settings_.device.starts_with("emulated:"); }

private:
    bool read_settings();  // of the environment, once; false where it makes no sense
    int open_context();
    int list_kernels();

    std::vector<std::string> ops_;
    std::mutex mutex_;
    Settings settings_;
    bool has_settings_ = false;
    tilewise_context* context_ = nullptr;
    tilewise_registry* registry_ = nullptr;
    bool shares_memory_ = true;
    std::string kernel_;
};

const std::string& last_error();  // of this thread
int fail(int code, std::string text);
int fail_with_library(int code);  // the library's message

// Copies a text with its end into a caller's buffer: 0, or -1 when it does not fit.
int copy_to_buffer(const std::string& text, char* buffer, int size);
// Keeps a text for the caller until the thread's next call.
const char* keep_for_caller(std::string text);

// "align=2" where a pointer is less than 16-byte aligned, "" otherwise: what the problem must say of them.
std::string alignment_option(const Buffers& buffers);

}  // namespace tilewise::compat
