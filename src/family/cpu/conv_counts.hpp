// SPDX-License-Identifier: MIT
// Counts what convolution kernels on a CPU do. What follows from the problem alone is worked out once, then every config is counted by the
// loop nest that it asks for (implicit products: kernels/cpu/blocked_conv/blocked_conv.hpp; direct kernels: kernels/cpu/direct_conv/direct_conv.hpp). Allocates nothing.
#pragma once

#include <array>
#include <cstdint>

#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "config/kernel_config.hpp"
#include "family/cpu/micro_kernel_work.hpp"

namespace tilewise {

// An implicit product does this much. Vectors are of the arch's width.
struct ImplicitWork {
    MicroKernelWork product;
    double gathered_rows = 0;     // a row of patches in one block of k
    double gathered_runs = 0;     // pieces that are contiguous in memory
    double gathered_vectors = 0;  // what they hold
    double pointers = 0;          // to rows that are read in place
    double pointed_reads = 0;     // of a value through one
    double crowded_reads = 0;  // of a value in place, where more rows share a set of the first cache than it has ways
    double packed_a = 0;       // vectors of activations, gathered or not, that are packed
    double turned_b = 0;       // vectors of weights that are packed through transposes
    double copied_b = 0;       // vectors of weights that are packed as they lie
    double copied_runs = 0;    // of these, pieces that are contiguous
    double sums = 0;           // vectors of sums that wait in memory, read or written
    double tasks = 0;          // products: one for each group and residue class
};

// A direct kernel does this much.
struct DirectWork {
    double products = 0;       // vector multiply-adds
    double reads = 0;          // vectors of activations
    double spreads = 0;        // of these, those whose lanes change places
    double masked_reads = 0;   // those in blocks of channels that are not whole
    double far_reads = 0;      // further vectors, where the lanes of one reach beyond a vector of inputs
    double spilled_reads = 0;  // where sums leave too few registers
    double weight_reads = 0;   // vectors of weights; backward weight: sums taken up and put down
    double rows = 0;           // rows of taps and steps of the reduction that a block of pixels goes through
    double generic_rows = 0;   // of these, those whose taps are not compiled in
    double blocks = 0;         // of pixels
    double stores = 0;         // vectors of outputs
    double packed = 0;         // elements of weights
    double lines = 0;          // of outputs, for each block of channels
};

class ConvCounts {
public:
    ConvCounts(const ProblemView& view, const ArchSpec& arch);

    ImplicitWork implicit_work(const KernelConfig& config) const;
    DirectWork direct_work(const KernelConfig& config) const;
    double parts(const KernelConfig& config) const;  // that threads can share
    double least_products() const;  // vector multiply-adds of depth 1 that no implicit product does without

private:
    // Positions that meet the same number of taps. Of backward data those of all residue classes that do; of the other
    // directions all outputs.
    struct TapClass {
        double residues = 1;   // classes
        double positions = 1;  // of one class, all images
        double line = 1;       // of these, along the last dimension
        std::int64_t taps = 1, line_taps = 1;
    };

    void add_forward_class();
    void add_residue_classes();
    bool reads_through_pointers(const KernelConfig& config) const;
    bool is_crowded(const KernelConfig& config) const;
    void add_pointed_weights(ImplicitWork& work, const TapClass& of, const KernelConfig& config) const;
    void add_gathering(ImplicitWork& work, const TapClass& of, const KernelConfig& config) const;
    void add_weights(ImplicitWork& work, const TapClass& of, const KernelConfig& config) const;
    void add_patches(ImplicitWork& work, const TapClass& of, const KernelConfig& config) const;

    const Problem& problem_;
    const ArchSpec& arch_;
    GemmView gemm_;
    std::int64_t lanes_;
    double groups_, channels_, per_vector_;  // channels: those of a group that are summed over; elements in a vector
    std::int64_t out_channels_;              // of a group, of what is computed
    bool in_place_ = false;                  // one tap at every position: activations need no gathering
    bool dense_ = false;                     // neighbouring taps are neighbours in memory
    bool channels_last_ = true;
    std::int64_t row_bytes_ = 0;  // between neighbouring rows of activations, modulo the sets of a cache
    // Three kinds of residues (those that meet no tap, few or one more) in each of three dimensions.
    std::array<TapClass, 27> classes_;
    std::size_t class_count_ = 0;
};

}  // namespace tilewise
