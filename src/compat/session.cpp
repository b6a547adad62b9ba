// SPDX-License-Identifier: MIT
#include "compat/session.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "compat/original_json.hpp"

namespace tilewise::compat {
namespace {

struct Free {
    void operator()(char* text) const { tilewise_free(text); }
};
using Text = std::unique_ptr<char, Free>;

struct CloseExecutable {
    void operator()(tilewise_executable* executable) const { tilewise_executable_destroy(executable); }
};
using ExecutableHandle = std::unique_ptr<tilewise_executable, CloseExecutable>;

// Memory of a device, given back at the end.
class DeviceMemory {
public:
    DeviceMemory(tilewise_context* context, std::int64_t bytes) : context_(context) {
        if (bytes > 0) ok_ = tilewise_allocate(context, static_cast<std::size_t>(bytes), &memory_) == TILEWISE_OK;
    }
    ~DeviceMemory() { static_cast<void>(tilewise_release(context_, memory_)); }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    bool ok() const { return ok_; }
    void* get() const { return memory_; }

private:
    tilewise_context* context_;
    void* memory_ = nullptr;
    bool ok_ = true;
};

std::string& message() {
    thread_local std::string text;
    return text;
}

std::int64_t operand_bytes(const std::string& problem, const char* name) {
    tilewise_tensor tensor{};
    tensor.size = sizeof(tensor);
    return tilewise_problem_operand(problem.c_str(), name, &tensor) == TILEWISE_OK ? tensor.bytes : -1;
}

tilewise_select_options options_of(const Settings& settings, const tilewise_registry* registry) {
    tilewise_select_options options{};
    options.size = sizeof(options);
    if (settings.kernel.empty()) {
        options.registry = registry;
    } else {
        options.kernel = settings.kernel.c_str();
    }
    return options;
}

double now_ms() {
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

const std::string& last_error() { return message(); }

int fail(int code, std::string text) {
    message() = std::move(text);
    return code;
}

int fail_with_library(int code) { return fail(code, tilewise_last_error()); }

int copy_to_buffer(const std::string& text, char* buffer, int size) {
    if (!buffer || size < 1) return fail(kError, "there is no buffer for the text");
    if (text.size() + 1 > static_cast<std::size_t>(size)) {
        return fail(kError, "the buffer is too small: need " + std::to_string(text.size() + 1) + " bytes");
    }
    std::memcpy(buffer, text.c_str(), text.size() + 1);
    return kOk;
}

const char* keep_for_caller(std::string text) {
    thread_local std::string kept;
    kept = std::move(text);
    return kept.c_str();
}

std::string alignment_option(const Buffers& buffers) {
    constexpr std::uintptr_t kAssumedAlignment = 16;
    const auto bits = reinterpret_cast<std::uintptr_t>(buffers.a) | reinterpret_cast<std::uintptr_t>(buffers.b) |
                      reinterpret_cast<std::uintptr_t>(buffers.c) | kAssumedAlignment;
    const std::uintptr_t align = bits & (~bits + 1);
    return align == kAssumedAlignment ? "" : ",align=" + std::to_string(align);
}

int Session::configure(const char* name, const char* value) {
    if (!read_settings()) return kError;
    if (!name || !value) return fail(kError, "a setting needs a name and a value");
    if (!settings_.set(name, value)) {
        return fail(kError, std::string("no setting '") + name + "' with the value '" + value + "'");
    }
    if (!is_open()) return kOk;
    close();  // the device, the types and the kernels may be others now
    return open();
}

bool Session::read_settings() {
    if (has_settings_) return true;
    std::string problem;
    settings_ = settings_of_environment(problem);
    has_settings_ = problem.empty();
    if (!has_settings_) fail(kError, problem);
    return has_settings_;
}

int Session::open() {
    if (is_open()) return kOk;
    if (!read_settings()) return kError;
    if (tilewise_check_abi(TILEWISE_ABI_VERSION) != TILEWISE_OK || open_context() != kOk || list_kernels() != kOk) {
        const std::string why = tilewise_last_error();
        close();
        return fail(kError, why);
    }
    return kOk;
}

int Session::open_context() {
    const bool anywhere = settings_.device == "auto";
    const std::vector<std::string> names =
        anywhere ? std::vector<std::string>{"cuda:0", "hip:0", "cpu"} : std::vector<std::string>{settings_.device};
    for (const std::string& name : names) {
        if (tilewise_context_create(name.c_str(), nullptr, &context_) == TILEWISE_OK) break;
    }
    if (!context_) return kError;
    Text json;
    char* text = nullptr;
    if (tilewise_context_describe(context_, &text) != TILEWISE_OK) return kError;
    json.reset(text);
    shares_memory_ = std::strstr(json.get(), "\"shares_host_memory\":true") != nullptr;
    return kOk;
}

int Session::list_kernels() {
    if (tilewise_registry_create("dispatcher", &registry_) != TILEWISE_OK) return kError;
    for (const std::string& op : ops_) {
        const std::string query = "{\"arch\": \"" + std::string(tilewise_context_arch(context_)) + "\", \"op\": \"" +
                                  op + "\", \"dtype\": \"" + settings_.dtype + "\", \"rule_set\": \"" +
                                  settings_.rule_set + "\", \"available\": true}";
        if (tilewise_registry_add_rule_set(registry_, query.c_str(), nullptr) != TILEWISE_OK) return kError;
    }
    return kOk;
}

void Session::close() {
    tilewise_registry_destroy(registry_);
    tilewise_context_destroy(context_);
    registry_ = nullptr;
    context_ = nullptr;
    kernel_.clear();
}

std::string Session::name_at(std::int64_t index) const {
    char* text = nullptr;
    if (tilewise_registry_name_at(registry_, index, &text) != TILEWISE_OK) return {};
    return original_name(Text(text).get());
}

std::string Session::original_name(const std::string& kernel) const {
    constexpr const char* kOriginalLayout = "rcr";
    if (field_of(kernel, "op") != "gemm" || field_of(kernel, "layout") != "any") return kernel;
    const std::string layout = settings_.layout.empty() ? kOriginalLayout : settings_.layout;
    char* text = nullptr;
    if (tilewise_config_set(kernel.c_str(), "layout", layout.c_str(), &text) != TILEWISE_OK) return kernel;
    return Text(text).get();
}

std::int64_t Session::count(const std::string& op) const {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count(); ++i) found += field_of(name_at(i), "op") == op ? 1 : 0;
    return found;
}

std::string Session::export_json() const {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < count(); ++i) names.push_back(name_at(i));
    return original_json("dispatcher", names);
}

namespace {

// The kernel that splits the reduction as wanted, where that is a valid kernel; else as it was chosen.
std::string with_split_k(tilewise_context* context, const std::string& problem, const std::string& kernel,
                         int split_k) {
    char* text = nullptr;
    const std::string parts = std::to_string(split_k);
    if (tilewise_config_set(kernel.c_str(), "split_k", parts.c_str(), &text) != TILEWISE_OK) return kernel;
    const Text changed(text);
    tilewise_select_options options{};
    options.size = sizeof(options);
    options.kernel = changed.get();
    tilewise_plan* plan = nullptr;
    const bool fits = tilewise_plan_create(context, problem.c_str(), &options, &plan) == TILEWISE_OK;
    tilewise_plan_destroy(plan);
    return fits ? changed.get() : kernel;
}

}  // namespace

std::string Session::select(const std::string& problem, int split_k) {
    const tilewise_select_options options = options_of(settings_, registry_);
    tilewise_plan* plan = nullptr;
    if (tilewise_plan_create(context_, problem.c_str(), &options, &plan) != TILEWISE_OK) {
        fail_with_library(kNoKernel);
        return {};
    }
    std::string name = tilewise_plan_kernel(plan);
    if (name.empty()) fail(kNoKernel, std::string("no kernel may run ") + problem + ": " + tilewise_plan_why(plan));
    tilewise_plan_destroy(plan);
    if (!name.empty() && split_k > 1) name = with_split_k(context_, problem, name, split_k);
    if (!name.empty()) kernel_ = name;
    return name;
}

double Session::run(const std::string& problem, const Buffers& buffers, void* stream, int split_k) {
    const std::string name = select(problem, split_k);
    if (name.empty()) return kNoKernel;
    tilewise_select_options options{};
    options.size = sizeof(options);
    options.kernel = name.c_str();
    tilewise_executable* made = nullptr;
    if (tilewise_prepare(context_, problem.c_str(), &options, &made) != TILEWISE_OK) return fail_with_library(kFailed);
    const ExecutableHandle executable(made);
    const DeviceMemory workspace(context_, tilewise_executable_workspace_bytes(made));
    if (!workspace.ok()) return fail_with_library(kFailed);
    tilewise_operands operands = TILEWISE_OPERANDS_INIT;
    operands.a = buffers.a, operands.b = buffers.b, operands.c = buffers.c;
    operands.workspace = workspace.get();
    double begin = 0;
    for (int i = -settings_.warmup; i < settings_.repeat; ++i) {
        if (i == 0 && tilewise_synchronize(context_, stream) != TILEWISE_OK) return fail_with_library(kFailed);
        if (i == 0) begin = now_ms();
        if (tilewise_run(made, &operands, stream) != TILEWISE_OK) return fail_with_library(kFailed);
    }
    if (tilewise_synchronize(context_, stream) != TILEWISE_OK) return fail_with_library(kFailed);
    constexpr double kLeastMs = 1e-6;  // a time of 0 would say nothing, and below it are errors
    return std::max((now_ms() - begin) / settings_.repeat, kLeastMs);
}

double Session::run_on_host(const std::string& problem, const Buffers& host, int split_k) {
    if (shares_memory_) return run(problem, host, nullptr, split_k);
    if (select(problem).empty()) return kNoKernel;
    const std::int64_t bytes[] = {operand_bytes(problem, "a"), operand_bytes(problem, "b"),
                                  operand_bytes(problem, "c")};
    const DeviceMemory a(context_, bytes[0]), b(context_, bytes[1]), c(context_, bytes[2]);
    if (!a.ok() || !b.ok() || !c.ok()) return fail_with_library(kFailed);
    const auto copy = [&](void* to, const void* from, std::int64_t count) {
        return tilewise_copy(context_, to, from, static_cast<std::size_t>(count), nullptr) == TILEWISE_OK;
    };
    if (!copy(a.get(), host.a, bytes[0]) || !copy(b.get(), host.b, bytes[1])) return fail_with_library(kFailed);
    const double ms = run(problem, {a.get(), b.get(), c.get()}, nullptr, split_k);
    if (ms > 0 && !copy(host.c, c.get(), bytes[2])) return fail_with_library(kFailed);
    return ms;
}

}  // namespace tilewise::compat
