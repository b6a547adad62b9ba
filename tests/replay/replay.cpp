// SPDX-License-Identifier: MIT
// Plays back what the library decides, so that a change of its inside shows whether it changed anything outside:
//   tilewise_replay PROBLEMS [FOLDER]
// For every arch with kernels and every problem of the file: the chosen kernel; for each kernel that may run it the predicted time,
// the digest of its source, workspace and launch; for each other one the rule that refused it. Prints a digest for each family and
// arch; with FOLDER, the whole text goes there, one file an arch.
#include <fmt/core.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <tuple>

#include "base/files.hpp"
#include "base/sha256.hpp"
#include "config/arch_catalog.hpp"
#include "config/workspace.hpp"
#include "family/family.hpp"
#include "family/launch_plan.hpp"
#include "family/may_run.hpp"
#include "family/problem_to_run.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"
#include "run/executable.hpp"
#include "select/select.hpp"

namespace tilewise {
namespace {

constexpr int kThreads = 4;  // of a CPU
constexpr std::size_t kDigits = 16;

std::string digest_of(std::string_view text) { return sha256_hex(text).substr(0, kDigits); }

struct Source {
    std::string_view family;
    std::string digest;  // of the text
};

Source source_of(const KernelConfig& config, const ArchSpec& arch) {
    return {name_of(family_of(config)), digest_of(generate_source(config, arch)->text)};
}

class Replay {
public:
    Replay(const ArchSpec& arch, std::ostream* text) : arch_(arch), text_(text) {}

    void play(const Problem& problem) {
        const std::string name = print_problem(problem);
        const Selection selection = select_kernel(problem, registry_for(problem), arch_, kThreads);
        const std::string chosen = selection.plan ? selection.plan->kernel->name : "";
        for (const Candidate& candidate : selection.candidates) {
            const Kernel& kernel = *candidate.kernel;
            const Source& source = sources_.at(kernel.name);
            add(source, fmt::format("{} {} {} us={:.6g} source={} {}", name, kernel.name == chosen ? "runs" : "may run",
                                    kernel.name, candidate.predicted_us.value_or(0), source.digest,
                                    launch_of(problem, kernel.config)));
        }
        for (const RejectedKernel& entry : selection.rejected) {
            add(sources_.at(entry.kernel->name), fmt::format("{} not {} {}", name, entry.kernel->name, entry.why.rule));
        }
    }

    void print_digests() const {
        for (const auto& [family, lines] : lines_) {
            std::printf("%s %s %zu %s\n", arch_.name.c_str(), std::string(family).c_str(), lines.count,
                        lines.digest.c_str());
        }
    }

private:
    struct Lines {
        std::size_t count = 0;
        std::string digest;
    };

    // The default set for the problem's operation and types.
    const Registry& registry_for(const Problem& problem) {
        const auto [place, is_new] =
            registries_.try_emplace({problem.op, problem.dtype_a, problem.dtype_b, problem.dtype_out});
        if (!is_new) return place->second;
        auto kernels = list_kernels(query_for(problem, arch_, RuleSet::standard));
        if (!kernels) return place->second;
        std::erase_if(*kernels, [](const Kernel& kernel) { return !kernel.available; });
        for (const Kernel& kernel : *kernels) sources_.try_emplace(kernel.name, source_of(kernel.config, arch_));
        place->second.add(std::move(*kernels));
        return place->second;
    }

    std::string launch_of(const Problem& given, const KernelConfig& config) const {
        Problem problem = given;
        if (!may_run(ProblemView(given), config, arch_)) {
            problem = problem_to_run(given, config, arch_)->problem;
        }
        const auto plan = launch_plan(problem, config, arch_, kThreads);
        return plan ? launch_to_json(*plan).dump() : "none";
    }

    // A digest of the lines so far.
    void add(const Source& source, const std::string& line) {
        Lines& lines = lines_[source.family];
        ++lines.count;
        lines.digest = digest_of(lines.digest + line);
        if (text_) *text_ << line << '\n';
    }

    const ArchSpec& arch_;
    std::ostream* text_;
    std::map<std::tuple<Op, DType, DType, DType>, Registry> registries_;
    std::map<std::string, Source> sources_;
    std::map<std::string_view, Lines> lines_;
};

std::vector<Problem> problems_of(const std::string& path) {
    std::vector<Problem> problems;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') continue;
        auto problem = parse_problem(line);
        if (!problem) {
            std::fprintf(stderr, "%s: %s: %s\n", path.c_str(), line.c_str(), problem.error().message.c_str());
            return {};
        }
        problems.push_back(std::move(*problem));
    }
    return problems;
}

bool replay(const std::string& path, const std::string& folder) {
    const std::vector<Problem> problems = problems_of(path);
    const auto catalog = ArchCatalog::embedded();
    if (!catalog) return false;
    for (const ArchSpec& arch : catalog->archs()) {
        std::ofstream text;
        if (!folder.empty()) text.open(folder + "/" + arch.name + ".txt");
        Replay replay(arch, folder.empty() ? nullptr : &text);
        for (const Problem& problem : problems) replay.play(problem);
        replay.print_digests();
    }
    return !problems.empty();
}

}  // namespace
}  // namespace tilewise

int main(int count, char** words) {
    if (count < 2 || count > 3) {
        std::fputs("usage: tilewise_replay PROBLEMS [FOLDER]\n", stderr);
        return 2;
    }
    return tilewise::replay(words[1], count > 2 ? words[2] : "") ? 0 : 1;
}
