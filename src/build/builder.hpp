// SPDX-License-Identifier: MIT
// From a request to a kernel that can be loaded: remembered, cached, packed, built in, or compiled, in this order. Safe to
// use from many threads and processes and after a fork; identical requests are compiled once.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "build/build_request.hpp"
#include "build/build_settings.hpp"
#include "build/built_kernel.hpp"
#include "build/kernel_cache.hpp"
#include "build/pack.hpp"
#include "build/toolchain.hpp"

namespace tilewise {

struct BuildProgress {
    std::size_t done = 0;
    std::size_t failed = 0;  // of those done
    std::size_t total = 0;
    std::string_view kernel;  // the one that was just finished
};

class Builder {
public:
    explicit Builder(BuildSettings settings);
    ~Builder();
    Builder(const Builder&) = delete;
    Builder& operator=(const Builder&) = delete;

    // The file stays at least until another process prunes or clears the cache: if it is gone when it is to be loaded,
    // ask again.
    Result<BuiltKernel> build(const BuildRequest& request);

    // With `jobs` compilers at a time. Results are in the order of the requests; a failure stops nothing. `progress` is
    // called on the calling thread.
    std::vector<Result<BuiltKernel>> build_all(std::span<const BuildRequest> requests, int jobs,
                                               const std::function<void(const BuildProgress&)>& progress = {});

    // The next build() of this digest looks at the file again, since it turned out not to be what was built.
    void forget(const std::string& digest);
    // The next build() of this digest does not take it from the cache, where it is whole but no kernel.
    void discard(const std::string& digest);

    // Whether build() would need a compiler: it is not remembered, cached, packed or built in. Compiles and loads nothing;
    // what is there may still turn out to be damaged.
    bool needs_compiler(const BuildRequest& request);
    // Whether there is one for such a request. Looking for it may start it once per process, to ask for its version.
    bool has_compiler(const BuildRequest& request) const;

    const BuildSettings& settings() const { return settings_; }
    Status add_pack(const std::string& path);  // for what is built from now on
    std::vector<std::string> tuning() const;  // the tuning records that packs carry, a text for each pack that has some
    // Says what is wrong with the packs of the settings that are not used.
    const std::vector<Error>& pack_errors() const { return pack_errors_; }

private:
    struct State;

    State& state();
    // Whether the driver takes what this compiler built: a kernel of a newer one counts as not being there.
    bool loads_here(const Manifest& manifest) const;
    std::optional<CacheEntry> find_cached(State& now, const std::string& digest) const;
    Result<CacheEntry> publish(State& now, const std::string& folder, const std::string& digest) const;
    Result<BuiltKernel> obtain(State& now, const BuildRequest& request, const std::string& digest);
    std::optional<BuiltKernel> from_packs(State& now, const BuildRequest& request, const std::string& digest);
    std::optional<BuiltKernel> from_pack(State& now, const Pack& pack, KernelOrigin origin, const BuildRequest& request,
                                         const std::string& digest);
    Result<BuiltKernel> compile(State& now, const BuildRequest& request, const std::string& digest);
    Result<BuiltKernel> compile_privately(State& now, const BuildRequest& request, const std::string& digest,
                                          const Toolchain& toolchain, const std::string& why);
    Error no_compiler(State& now, const BuildRequest& request, const std::string& digest, const Error& why) const;

    BuildSettings settings_;
    using Packs = std::vector<Pack>;
    std::shared_ptr<const Packs> packs() const;

    std::shared_ptr<const Packs> packs_;  // never changed in place; replaced and copied under fork_safe_mutex
    std::vector<Error> pack_errors_;
    std::atomic<State*> state_;
};

}  // namespace tilewise
