// SPDX-License-Identifier: MIT
// A kernel that needs aligned sizes can run another problem instead of one that has none: the smallest larger problem that the
// kernel takes, whose result holds that of the problem. Zeros that are added to a reduction change no sum, and rows, columns,
// channels, images and groups that are added are cut off again. Pure; a note states the cost. Selection takes such a kernel
// where none fits as it is, or where it is faster on a GPU, copies included.
#pragma once

#include <array>
#include <optional>

#include "base/note.hpp"
#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/padded_tensors.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct PaddedProblem {
    Problem problem;               // fits the kernel, also with what it leaves of the limit on workspace
    std::array<bool, 3> copied{};  // of A, B and C, those that the kernel cannot use where they are
    PaddedTensors tensors;
    // What is padded, why, and the way out; nothing where nothing is copied, or nobody asked.
    std::optional<Note> note;
};

// Nothing where the problem fits as it is, and where padding cannot help; then `why`, unless null, gets the broken rule. A kernel that is
// known to fit a problem, unless null, is not asked about those sizes again.
std::optional<PaddedProblem> padded_problem(const Problem& given, const KernelConfig& config, const ArchSpec& arch,
                                            Rejected* why = nullptr, const Problem* fitting = nullptr);
// The same without a word, for choosing among many kernels.
std::optional<PaddedProblem> padded_silently(const Problem& given, const KernelConfig& config, const ArchSpec& arch,
                                             const Problem* fitting);

// The sizes that the config's vectors and tiles need, whether or not it may run them; nothing where there are none.
std::optional<Problem> padded_sizes(const Problem& given, const KernelConfig& config);
// Every kernel that runs `padded` in the place of the problem copies these: operands that have other sizes there.
PaddedProblem with_sizes_of(const Problem& given, const Problem& padded);

// The convolution with channels that are whole chunks of 16 bytes, which GPU kernels copy fastest; nothing where they are already, or
// channels are not what lies side by side.
std::optional<Problem> with_padded_channels(const Problem& given);

// Whether the rule is one that padding may satisfy: for sorting out kernels without working it out.
bool is_about_sizes(std::string_view rule);

}  // namespace tilewise
