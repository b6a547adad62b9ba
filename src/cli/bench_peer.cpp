// SPDX-License-Identifier: MIT
#include "cli/bench_peer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "measure/tensors.hpp"

namespace tilewise::cli {
namespace {

using LoadPeer = Result<std::unique_ptr<bench::Peer>> (*)(const std::string& path, int threads);

struct PeerKind {
    std::string_view name;
    std::vector<std::string> files;  // for the loader to find
    LoadPeer load;
};

const std::vector<PeerKind>& peer_kinds() {
    static const std::vector<PeerKind> kinds = {
        {"openblas", {"libopenblas.so.0", "libopenblas.so"}, bench::load_openblas},
        {"onednn",
         {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"},
         [](const std::string& path, int) { return bench::load_onednn(path); }},
    };
    return kinds;
}

Result<std::unique_ptr<bench::Peer>> load_peer(const std::string& wanted, int threads) {
    const auto equals = wanted.find('=');
    const std::string name = wanted.substr(0, equals);
    if (name == "cublas") {
        return unsupported_error("cuBLAS is compared with on a GPU, in captured graphs: make bench-gpu");
    }
    for (const PeerKind& kind : peer_kinds()) {
        if (kind.name != name) continue;
        const auto files = equals == std::string::npos ? kind.files : std::vector{wanted.substr(equals + 1)};
        std::string why;
        for (const std::string& file : files) {
            auto peer = kind.load(file, threads);
            if (peer) return peer;
            why += fmt::format("{}{}", why.empty() ? "" : "; ", peer.error().message);
        }
        return Error{ErrorCode::device, fmt::format("{}. Install it, or name its file: --peer {}=FILE", why, name)};
    }
    return unknown_choice("peer", name, peer_choices());
}

bool is_plain_product(const Problem& p) {
    return p.op == Op::gemm && p.gemm.batch == 1 && p.epilogue.empty() && !p.beta && p.scale == Scale::none;
}

}  // namespace

std::vector<std::string> peer_choices() { return {"onednn", "openblas", "cublas"}; }

Result<Peers> load_peers(const Context& context, const Device& device) {
    Peers peers;
    const std::vector<std::string> wanted = context.arguments.values("peer");
    if (!wanted.empty() && !device.shares_host_memory()) {
        return unsupported_error(
            fmt::format("--peer is for the CPU, not for {}; make bench-gpu compares there", device.name()));
    }
    // oneDNN takes its threads from OpenMP, which looks when it starts.
    if (!wanted.empty()) setenv("OMP_NUM_THREADS", fmt::format("{}", device.max_threads()).c_str(), 1);
    for (const std::string& one : wanted) {
        auto peer = load_peer(one, device.max_threads());
        if (!peer) return peer.error();
        peers.push_back(std::move(*peer));
    }
    return peers;
}

Result<TimingResult> time_peer(bench::Peer& peer, const Problem& problem, const Device& device) {
    if (!is_plain_product(problem)) {
        return unsupported_error(fmt::format("{}: only plain products are compared", peer.name()));
    }
    constexpr std::int64_t kMostSets = 64, kMostBytes = std::int64_t{1} << 30;
    std::vector<std::unique_ptr<Tensors>> sets;
    std::vector<TimedCall> calls;
    for (std::int64_t count = 1; std::ssize(sets) < count;) {
        auto tensors = Tensors::make(problem, sets.size());
        if (!tensors) return tensors.error();
        sets.push_back(std::make_unique<Tensors>(std::move(*tensors)));
        const std::int64_t bytes = std::max<std::int64_t>(1, sets.back()->bytes());
        count = std::clamp(std::min(2 * device.arch().cache_bytes, kMostBytes) / bytes + 1, std::int64_t{1}, kMostSets);
        auto call = peer.bind(*sets.back());
        if (!call) return call.error();
        calls.push_back(std::move(*call));
    }
    TimingOptions options;
    options.sets = static_cast<int>(calls.size());
    return time_calls([&](int set) { calls[static_cast<std::size_t>(set)](0); }, options);
}

}  // namespace tilewise::cli
