// SPDX-License-Identifier: MIT
#include "build/builder.hpp"

#include <fmt/core.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/activity.hpp"
#include "base/files.hpp"
#include "base/fork_safe_mutex.hpp"
#include "base/text.hpp"
#include "build/builtin_pack.hpp"
#include "build/code_suffix.hpp"
#include "build/compile.hpp"
#include "build/memory_file.hpp"
#include "build/nvrtc.hpp"
#include "build/toolchain_error.hpp"

namespace tilewise {
namespace {

constexpr std::chrono::seconds kLockGrace{2};  // what the holder of a lock needs beside the compiler

BuiltKernel built_from(CacheEntry entry, KernelOrigin origin, std::string note = {}) {
    std::string digest = entry.manifest.digest;
    return {std::move(entry.path), std::move(digest), origin, std::move(note), std::move(entry.manifest)};
}

// Reads a manifest's "nvrtc 13.0"; none for another compiler.
std::optional<std::pair<int, int>> version_of_compiler(std::string_view compiler) {
    constexpr std::string_view kName = "nvrtc ";
    return compiler.starts_with(kName) ? nvrtc_version(compiler.substr(kName.size())) : std::nullopt;
}

// One request in sixteen, whichever they are, so that short-lived processes take part.
bool time_to_prune(const std::string& digest) { return digest[0] == '0'; }

// The loader maps a shared object as code, which some file systems forbid; then it comes from memory.
BuiltKernel executable_file(BuiltKernel kernel) {
    struct statvfs info {};
    const bool is_mapped = kernel.path.ends_with(kSharedObject) || kernel.path.ends_with(kEmulatedCode);
    if (!is_mapped || is_memory_file(kernel.path) || statvfs(kernel.path.c_str(), &info) != 0) return kernel;
    if ((info.f_flag & ST_NOEXEC) == 0) return kernel;
    const auto contents = read_file(kernel.path);
    const auto path = contents ? memory_file(kernel.digest, *contents) : Result<std::string>(contents.error());
    if (!path) return kernel;  // loading it will say what is wrong
    kernel.note =
        fmt::format("loaded from memory, since the file system of '{}' forbids execution (noexec)", kernel.path);
    kernel.path = *path;
    return kernel;
}

// "cache", "built by g++ 12.2.0", and what there is to note.
std::string told(const BuiltKernel& kernel) {
    std::string text(name_of(kernel.origin));
    if (kernel.origin == KernelOrigin::built) text += fmt::format(" by {}", kernel.manifest.compiler);
    return kernel.note.empty() ? text : fmt::format("{}; note: {}", text, kernel.note);
}

struct Slot {
    std::optional<Result<BuiltKernel>> result;  // none while it is being built
};

}  // namespace

// All that changes. A forked child begins a new one: in the old one mutexes may be locked, and slots being built, by
// threads that the child does not have.
struct Builder::State {
    explicit State(const std::string& cache_dir) : cache(cache_dir) {}

    const pid_t pid = getpid();
    KernelCache cache;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, std::shared_ptr<Slot>> slots;
    std::set<std::string> discarded;  // under mutex; never taken from the cache again where they could not be removed
    std::mutex private_mutex;
    std::optional<PrivateDir> private_root;  // where this process builds for itself; removed with the builder
    State* parent = nullptr;                 // what was there before the fork; never touched
};

Builder::Builder(BuildSettings settings) : settings_(std::move(settings)), state_(new State(settings_.cache_dir)) {
    Packs packs;
    for (const std::string& path : settings_.packs) {
        auto pack = Pack::open(path);
        if (pack) {
            packs.push_back(std::move(*pack));
        } else {
            pack_errors_.push_back(pack.error());
        }
    }
    packs_ = std::make_shared<const Packs>(std::move(packs));
}

Status Builder::add_pack(const std::string& path) {
    auto pack = Pack::open(path);
    if (!pack) return pack.error();
    const std::scoped_lock lock(fork_safe_mutex());
    Packs more = *packs_;
    more.push_back(std::move(*pack));
    packs_ = std::make_shared<const Packs>(std::move(more));
    return {};
}

std::shared_ptr<const Builder::Packs> Builder::packs() const {
    const std::scoped_lock lock(fork_safe_mutex());
    return packs_;
}

std::vector<std::string> Builder::tuning() const {
    std::vector<std::string> texts;
    const auto all = packs();
    for (const Pack& pack : *all) {
        if (!pack.tuning().empty()) texts.push_back(pack.tuning());
    }
    return texts;
}

Builder::~Builder() {
    State* state = state_.load();
    if (state->pid == getpid()) delete state;
}

Builder::State& Builder::state() {
    State* now = state_.load();
    if (now->pid == getpid()) return *now;
    auto fresh = std::make_unique<State>(settings_.cache_dir);
    fresh->parent = now;
    if (state_.compare_exchange_strong(now, fresh.get())) return *fresh.release();
    return *now;  // another thread of the child was first
}

Result<BuiltKernel> Builder::build(const BuildRequest& request) {
    const auto digest = digest_of(request);
    if (!digest) return digest.error();
    State& now = state();
    const auto slot = std::make_shared<Slot>();
    {
        std::unique_lock lock(now.mutex);
        const std::shared_ptr<Slot> other = now.slots[*digest];
        if (other) {
            now.changed.wait(lock, [&] { return other->result.has_value(); });
            const Result<BuiltKernel>& result = *other->result;
            // Another process may have removed it since.
            if (!result || access(result->path.c_str(), R_OK) == 0) return result;
        }
        now.slots[*digest] = slot;
    }
    Result<BuiltKernel> result = toolchain_error("not built");
    try {
        Activity activity("build", request.name);
        result = obtain(now, request, *digest);
        if (result) result = executable_file(std::move(*result));
        if (activity.is_told()) activity.tell(result ? told(*result) : result.error().message);
    } catch (const std::exception& error) {  // out of memory, say; the waiting threads must still be told
        result = toolchain_error(fmt::format("cannot build kernel {}: {}", request.name, error.what()));
    }
    {
        const std::scoped_lock lock(now.mutex);
        slot->result = result;
        // A failure is for those who waited for it; who asks later tries again.
        if (!result && now.slots[*digest] == slot) now.slots.erase(*digest);
    }
    now.changed.notify_all();
    return result;
}

void Builder::discard(const std::string& digest) {
    forget(digest);
    State& now = state();
    static_cast<void>(now.cache.remove(digest));  // where that fails, the set keeps it from being taken
    const std::scoped_lock lock(now.mutex);
    now.discarded.insert(digest);
}

void Builder::forget(const std::string& digest) {
    State& now = state();
    now.cache.forget(digest);
    const std::scoped_lock lock(now.mutex);
    // One that is being built is as new as can be.
    if (const auto at = now.slots.find(digest); at != now.slots.end() && at->second->result) now.slots.erase(at);
}

bool Builder::loads_here(const Manifest& manifest) const {
    if (!settings_.driver_version) return true;
    const auto version = version_of_compiler(manifest.compiler);
    const std::string_view suffix = std::string_view(manifest.file).substr(manifest.file.find('.'));
    return !version || driver_loads(suffix, version->first, version->second, *settings_.driver_version);
}

std::optional<CacheEntry> Builder::find_cached(State& now, const std::string& digest) const {
    {
        const std::scoped_lock lock(now.mutex);
        if (now.discarded.contains(digest)) return std::nullopt;
    }
    auto entry = now.cache.find(digest);
    return entry && loads_here(entry->manifest) ? std::move(entry) : std::nullopt;
}

// An entry of a compiler too new for the driver makes room: drivers that take that one take ours, too.
Result<CacheEntry> Builder::publish(State& now, const std::string& folder, const std::string& digest) const {
    const auto there = now.cache.peek(digest);
    if (there && !loads_here(*there)) {
        if (auto status = now.cache.remove(digest); !status) return status.error();
    }
    return now.cache.publish(folder, digest);
}

Result<BuiltKernel> Builder::obtain(State& now, const BuildRequest& request, const std::string& digest) {
    if (auto status = now.cache.check(digest); !status) return status.error();
    if (auto entry = find_cached(now, digest)) return built_from(std::move(*entry), KernelOrigin::cache);
    if (auto kernel = from_packs(now, request, digest)) return std::move(*kernel);
    return compile(now, request, digest);
}

std::optional<BuiltKernel> Builder::from_packs(State& now, const BuildRequest& request, const std::string& digest) {
    const auto all = packs();
    for (const Pack& pack : *all) {
        if (auto kernel = from_pack(now, pack, KernelOrigin::pack, request, digest)) return kernel;
    }
    return from_pack(now, builtin_pack(), KernelOrigin::builtin, request, digest);
}

std::optional<BuiltKernel> Builder::from_pack(State& now, const Pack& pack, KernelOrigin origin,
                                              const BuildRequest& request, const std::string& digest) {
    const Manifest* manifest = pack.find(digest);
    if (!manifest || !loads_here(*manifest)) return std::nullopt;
    const auto contents = pack.read(digest);
    if (!contents) return std::nullopt;  // as if the pack did not have it

    // The loader needs a file; in the cache it also serves the next process.
    const auto put_into_cache = [&]() -> Result<CacheEntry> {
        auto dir = now.cache.private_dir();
        if (!dir) return dir.error();
        const std::string folder = dir->inside() + "/entry";
        auto status = make_directories(folder);
        if (status) status = write_file(folder + "/source.cpp", request.source);
        if (status) status = write_file(fmt::format("{}/{}", folder, manifest->file), *contents);
        if (status) status = write_file(folder + "/manifest.json", manifest_json(*manifest).dump(2) + "\n");
        if (!status) return status.error();
        return publish(now, folder, digest);
    };
    auto entry = put_into_cache();
    if (entry) return built_from(std::move(*entry), origin);
    auto path = memory_file(digest, *contents);
    if (!path) return std::nullopt;
    return BuiltKernel{*path, digest, origin,
                       "loaded from memory, since the cache cannot be used: " + entry.error().message, *manifest};
}

bool Builder::needs_compiler(const BuildRequest& request) {
    const auto digest = digest_of(request);
    if (!digest) return true;
    State& now = state();
    {
        const std::scoped_lock lock(now.mutex);
        if (now.slots.contains(*digest)) return false;
    }
    const auto has = [&](const Pack& pack) {
        const Manifest* manifest = pack.find(*digest);
        return manifest && loads_here(*manifest);
    };
    const auto all = packs();
    if (has(builtin_pack()) || std::any_of(all->begin(), all->end(), has)) return false;
    if (!settings_.driver_version || !now.cache.may_have(*digest)) return !now.cache.may_have(*digest);
    const auto cached = now.cache.peek(*digest);
    return !cached || !loads_here(*cached);
}

bool Builder::has_compiler(const BuildRequest& request) const { return find_toolchain(request.suffix, settings_).ok(); }

Error Builder::no_compiler(State& now, const BuildRequest& request, const std::string& digest, const Error& why) const {
    std::string message = fmt::format(
        "kernel {} is not cached, in a pack or built in, and cannot be compiled: {}; kernels from a pack "
        "(TILEWISE_PACKS) and the built-in ones (tilewise kernels --rule-set builtin) work without",
        request.name, why.message);
    for (const Error& error : pack_errors_) message += "; " + error.message;
    const auto add_refused = [&](const Manifest& manifest, const std::string& place) {
        message += fmt::format("; the one in {} is of {}, too new for the driver here", place, manifest.compiler);
    };
    if (const auto cached = now.cache.peek(digest); cached && !loads_here(*cached)) add_refused(*cached, "the cache");
    const auto all = packs();
    for (const Pack& pack : *all) {
        const Manifest* manifest = pack.find(digest);
        if (manifest && !loads_here(*manifest)) add_refused(*manifest, fmt::format("the pack '{}'", pack.path()));
    }
    return toolchain_error(std::move(message));
}

Result<BuiltKernel> Builder::compile(State& now, const BuildRequest& request, const std::string& digest) {
    const auto toolchain = find_toolchain(request.suffix, settings_);
    if (!toolchain) return no_compiler(now, request, digest, toolchain.error());

    auto dir = now.cache.private_dir();
    if (!dir) return compile_privately(now, request, digest, *toolchain, dir.error().message);
    // While another process builds the same kernel we wait for it, but only so long: it may be stopped. And where locks
    // do not work, all build, and all but one find the kernel published.
    const auto patience = settings_.stop ? std::chrono::milliseconds(0) : settings_.compile_limit + kLockGrace;
    const auto lock = now.cache.lock(digest, patience);
    if (auto entry = find_cached(now, digest)) return built_from(std::move(*entry), KernelOrigin::cache);

    auto outcome =
        compile_kernel({request, digest, *toolchain, settings_.compile_limit, settings_.stop}, dir->inside());
    if (const auto* fault = std::get_if<CompileFault>(&outcome)) {
        if (settings_.stop && *settings_.stop) return toolchain_error(fault->message);
        if (fault->storage) return compile_privately(now, request, digest, *toolchain, fault->message);
        const auto kept = now.cache.keep_failed(dir->inside() + "/work", digest);
        if (!kept) return toolchain_error(fault->message);
        return toolchain_error(fmt::format("{}\nsource, headers, command and log are in {}", fault->message, *kept));
    }
    auto entry = publish(now, dir->inside() + "/work/entry", digest);
    if (!entry) return compile_privately(now, request, digest, *toolchain, entry.error().message);
    // Failing to make room is no failure of this build.
    if (time_to_prune(digest)) static_cast<void>(now.cache.prune(settings_.cache_max_bytes, digest));
    return built_from(std::move(*entry), KernelOrigin::built);
}

Result<BuiltKernel> Builder::compile_privately(State& now, const BuildRequest& request, const std::string& digest,
                                               const Toolchain& toolchain, const std::string& why) {
    std::string root, root_inside;
    {
        const std::scoped_lock lock(now.private_mutex);
        if (!now.private_root) {
            const std::string prefix = fmt::format("tilewise-{}-", geteuid());
            PrivateDir::remove_abandoned(settings_.temp_dir, prefix);
            auto made = PrivateDir::create(settings_.temp_dir, prefix);
            if (!made) {
                return toolchain_error(fmt::format("there is no place to build kernel {}: {}; {}", request.name, why,
                                                   made.error().message));
            }
            now.private_root.emplace(std::move(*made));
        }
        root = now.private_root->path();
        root_inside = now.private_root->inside();
    }
    auto dir = PrivateDir::create(root_inside, "build-");
    if (!dir) return toolchain_error(fmt::format("{}; {}", why, dir.error().message));
    auto outcome = compile_kernel({request, digest, toolchain, settings_.compile_limit, settings_.stop}, dir->inside());
    if (const auto* fault = std::get_if<CompileFault>(&outcome)) {
        return toolchain_error(fmt::format("{}\nthe cache cannot be used: {}", fault->message, why));
    }
    const auto moved = publish_directory(dir->inside() + "/work/entry", fmt::format("{}/{}", root_inside, digest));
    if (!moved) return toolchain_error(moved.error().message);
    auto& manifest = std::get<Manifest>(outcome);
    return BuiltKernel{fmt::format("{}/{}/{}", root, digest, manifest.file), digest, KernelOrigin::private_,
                       "built for this process only, since the cache cannot be used: " + why, std::move(manifest)};
}

}  // namespace tilewise
