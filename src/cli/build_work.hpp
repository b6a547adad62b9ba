// SPDX-License-Identifier: MIT
// The work of tilewise build: the kernels of rule sets, or those that a list of problems needs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "build/build_request.hpp"
#include "cli/command.hpp"
#include "select/tuning_database.hpp"

namespace tilewise::cli {

struct BuildWork {
    std::size_t kernels = 0;
    std::size_t without_template = 0;
    std::size_t portable = 0;  // of the requests, those for later chips (PTX)
    std::size_t problems = 0;
    std::vector<BuildRequest> requests;
    std::string tuning;  // the records that go into a pack with them
};

// The kernels of a rule set: --rule-set, --op, --dtype, --epilogues, --shard.
Status add_rule_set(const Context& context, const ArchSpec& arch, BuildWork& work);

// --problems, with --top or --kernels and --seed, and --most; `tuned` is all that was ever measured here.
Status add_problems(const Context& context, const ArchSpec& arch, std::span<const Problem> problems,
                    std::span<const TuningRecord> tuned, BuildWork& work);

}  // namespace tilewise::cli
