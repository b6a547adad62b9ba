// SPDX-License-Identifier: MIT
// The probe kernels compile, wherever NVRTC is, and none of them is without a table.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "build/build_testing.hpp"
#include "build/nvrtc.hpp"
#include "kernels/probe_list.hpp"

namespace tilewise {
namespace {

class ProbeCompile : public build_testing::BuildTest {};

TEST_F(ProbeCompile, EveryProbe) {
    if (const auto found = find_nvrtc("", std::nullopt); !found) GTEST_SKIP() << found.error().message;
    std::vector<BuildRequest> requests;
    for (const Probe& probe : all_probes()) requests.push_back(probe_request(probe));
    Builder builder(settings_);
    const auto built = builder.build_all(requests, static_cast<int>(std::thread::hardware_concurrency()));
    for (std::size_t i = 0; i < built.size(); ++i) {
        ASSERT_TRUE(built[i].ok()) << built[i].error().message;
        EXPECT_EQ(built[i]->manifest.resources->local_bytes, 0) << requests[i].name << " spills registers";
    }
}

// Tables are written by the probe that has their name, before any other reads them.
TEST(ProbeList, TablesHaveAWriter) {
    std::set<std::string> names, written;
    for (const Probe& probe : all_probes()) {
        EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
        if (probe.name == probe.table) written.insert(probe.table);
        EXPECT_TRUE(written.contains(probe.table)) << probe.name;
    }
}

}  // namespace
}  // namespace tilewise
