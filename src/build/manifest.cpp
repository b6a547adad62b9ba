// SPDX-License-Identifier: MIT
#include "build/manifest.hpp"

#include <array>
#include <ctime>
#include <limits>
#include <utility>

#include "base/json_object.hpp"
#include "build/build_request.hpp"
#include "kernels/common/args.hpp"

namespace tilewise {
namespace {

constexpr int kSchema = 1;

Json resources_json(const KernelResources& r) {
    Json json =
        Json::object({{"registers", r.registers}, {"shared_bytes", r.shared_bytes}, {"local_bytes", r.local_bytes}});
    if (r.spilled_registers > 0) json.set("spilled_registers", r.spilled_registers);
    return json;
}

Result<KernelResources> parse_resources(const Json& json, const std::string& file) {
    JsonObject object(json, file, "resources");
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    KernelResources r;
    r.registers = object.integer("registers", 1, kMost);
    r.shared_bytes = object.integer("shared_bytes", 0, kMost);
    r.local_bytes = object.integer("local_bytes", 0, kMost);
    r.spilled_registers = object.integer_or("spilled_registers", 0, kMost, 0);
    if (auto status = object.finish(); !status) return status.error();
    return r;
}

}  // namespace

Json manifest_json(const Manifest& m) {
    Json::Array flags(m.flags.begin(), m.flags.end());
    Json json = Json::object({{"schema", kSchema},
                              {"abi", kKernelAbi},
                              {"digest", m.digest},
                              {"kernel", m.kernel},
                              {"arch", m.arch},
                              {"flags", std::move(flags)},
                              {"compiler", m.compiler},
                              {"file", m.file},
                              {"size", m.size},
                              {"sha256", m.sha256},
                              {"created", m.created}});
    if (m.resources) json.set("resources", resources_json(*m.resources));
    return json;
}

Result<Manifest> parse_manifest(const Json& json, const std::string& file) {
    JsonObject object(json, file);
    object.integer("schema", kSchema, kSchema);
    // Kernels of other versions may lie in the same cache. They are whole, and the digest keeps them apart from ours.
    object.integer("abi", 1, std::numeric_limits<int>::max());
    Manifest m;
    m.digest = object.text("digest");
    m.kernel = object.text("kernel");
    m.arch = object.text("arch");
    m.flags = object.texts("flags");
    m.compiler = object.text("compiler");
    m.file = object.text("file");
    m.size = object.integer("size", 1, std::numeric_limits<std::int64_t>::max());
    m.sha256 = object.text("sha256");
    m.created = object.text("created");
    if (!is_digest(m.digest)) object.fail("digest", "must be 64 hex digits");
    if (!is_digest(m.sha256)) object.fail("sha256", "must be 64 hex digits");
    // It becomes part of a path.
    if (!m.file.starts_with("kernel.") || m.file.find('/') != std::string::npos) {
        object.fail("file", "must be a file name kernel.*");
    }
    const Json* resources = object.child_or_null("resources");
    if (auto status = object.finish(); !status) return status.error();
    if (resources) {
        const auto parsed = parse_resources(*resources, file);
        if (!parsed) return parsed.error();
        m.resources = *parsed;
    }
    return m;
}

std::string time_text() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::array<char, 32> text{};
    const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return {text.data(), length};
}

}  // namespace tilewise
