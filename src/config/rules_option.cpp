// SPDX-License-Identifier: MIT
// Rules about options: which the arch has for the operation, and which exclude each other.
#include <bit>

#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "config/rule_groups.hpp"

namespace tilewise {
namespace {

template <class Visit>
void each_missing_option(const KernelConfig& c, const ArchSpec& arch, Visit visit) {
    const auto fields = config_fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const bool has = arch.options[i][static_cast<std::size_t>(c.op)];
        if (fields[i].role == Role::option && !has && !fields[i].is_default(c)) visit(fields[i]);
    }
}

bool no_option(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    bool missing = false;
    each_missing_option(c, arch, [&](const ConfigField&) { missing = true; });
    if (!missing) return false;
    return refuse(
        out,
        [&] {
            std::string text;
            each_missing_option(c, arch, [&](const ConfigField& field) {
                text += fmt::format("{}{}=", text.empty() ? "" : ", ", field.name);
                field.print(c, text);
            });
            return text;
        },
        TILEWISE_TEXT("the default: {} has no such option for {}", arch.name, name_of(c.op)));
}

void correct_option(KernelConfig& c, const ArchSpec& arch) {
    each_missing_option(c, arch, [&](const ConfigField& field) { field.reset(c); });
}

bool stream_and_split(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.stream_k != StreamK::off && c.split_k > 1 &&
           refuse(out, TILEWISE_TEXT("stream_k={} and split_k={}", name_of(c.stream_k), c.split_k),
                  TILEWISE_TEXT("one of the two"));
}

void correct_split(KernelConfig& c, const ArchSpec&) { c.split_k = 1; }

bool wrong_determinism(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    // Atomics are the only source of a varying order; split-K may use them or a workspace.
    const bool atomic = c.stream_k == StreamK::atomic;
    const bool has_choice = c.split_k > 1;
    const bool right = atomic ? !c.deterministic : c.deterministic || has_choice;
    return !right && refuse(out,
                            TILEWISE_TEXT("deterministic={} with stream_k={}, split_k={}", c.deterministic,
                                          name_of(c.stream_k), c.split_k),
                            TILEWISE_TEXT("deterministic={}", !atomic));
}

void correct_determinism(KernelConfig& c, const ArchSpec&) { c.deterministic = c.stream_k != StreamK::atomic; }

bool wrong_cluster(const KernelConfig& c, const ArchSpec& arch, Rejected* out) {
    const auto power = [](int v) { return v > 0 && std::has_single_bit(static_cast<unsigned>(v)); };
    const std::int64_t blocks = std::int64_t{c.cluster.m} * c.cluster.n;
    if (c.cluster_k) {
        const bool right = blocks == 1 && c.split_k > 1 && c.split_k <= arch.max_cluster && !c.persistent;
        return !right && refuse(out,
                                TILEWISE_TEXT("cluster_k with split_k {}, cluster {}x{}, persistent={}", c.split_k,
                                              c.cluster.m, c.cluster.n, c.persistent),
                                TILEWISE_TEXT("2 to {} parts, cluster 1x1, persistent=false", arch.max_cluster));
    }
    const bool right = power(c.cluster.m) && power(c.cluster.n) && blocks <= arch.max_cluster;
    return !right && refuse(out, TILEWISE_TEXT("cluster {}x{}", c.cluster.m, c.cluster.n),
                            TILEWISE_TEXT("powers of two, at most {} blocks", arch.max_cluster));
}

void correct_cluster(KernelConfig& c, const ArchSpec&) {
    c.cluster = {1, 1};
    c.cluster_k = false;
}

bool wrong_merge(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kMostGroups = 32;  // beyond that 31/32 of a block-diagonal product is zeros
    const int groups = c.num_groups_to_merge;
    const bool right = groups >= 1 && groups <= kMostGroups && std::has_single_bit(static_cast<unsigned>(groups));
    return !right && refuse(out, TILEWISE_TEXT("num_groups_to_merge {}", groups),
                            TILEWISE_TEXT("a power of two from 1 to {}", kMostGroups));
}

void correct_merge(KernelConfig& c, const ArchSpec&) { c.num_groups_to_merge = 1; }

bool wrong_rank(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    for (const Extents* extents : {&c.ct_filter, &c.ct_stride, &c.ct_dilation}) {
        if (extents->rank != 0 && extents->rank != c.ndim) {
            return refuse(out, TILEWISE_TEXT("compile-time extents of {} dimensions", extents->rank),
                          TILEWISE_TEXT("{}, or none", c.ndim));
        }
    }
    return false;
}

void correct_rank(KernelConfig& c, const ArchSpec&) {
    for (Extents* extents : {&c.ct_filter, &c.ct_stride, &c.ct_dilation}) {
        if (extents->rank != c.ndim) *extents = Extents{};
    }
}

bool all_are(const Extents& extents, std::int64_t value) {
    for (int i = 0; i < extents.rank; ++i) {
        if (extents[i] != value) return false;
    }
    return true;  // also when not given
}

bool filter_contradicts(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool is_1x1 =
        c.specialization == Specialization::filter_1x1 || c.specialization == Specialization::filter_1x1_stride1;
    const bool right = (!is_1x1 || all_are(c.ct_filter, 1)) &&
                       (c.specialization != Specialization::filter_1x1_stride1 || all_are(c.ct_stride, 1)) &&
                       (c.specialization != Specialization::filter_3x3 || all_are(c.ct_filter, 3));
    return !right && refuse(out,
                            TILEWISE_TEXT("specialization {} with another compile-time filter or stride",
                                          name_of(c.specialization)),
                            TILEWISE_TEXT("extents that agree, or none"));
}

void correct_filter(KernelConfig& c, const ArchSpec&) { c.ct_filter = c.ct_stride = Extents{}; }

bool conflicting(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool depthwise = c.specialization == Specialization::depthwise,
               direct = family_of(c) == FamilyId::direct_conv;
    std::string_view first, second;
    if (c.explicit_gemm && c.num_groups_to_merge > 1) first = "explicit_gemm", second = "num_groups_to_merge";
    if (c.explicit_gemm && c.split_image) first = "explicit_gemm", second = "split_image";
    if (depthwise && c.num_groups_to_merge > 1) first = "specialization=depthwise", second = "num_groups_to_merge";
    if (depthwise && c.explicit_gemm) first = "specialization=depthwise", second = "explicit_gemm";
    if (depthwise && c.stream_k != StreamK::off) first = "specialization=depthwise", second = "stream_k";
    if (c.pipeline == Pipeline::preshuffle && c.swap_ab) first = "pipeline=preshuffle", second = "swap_ab";
    if (direct && c.pipeline == Pipeline::preshuffle) first = "a direct kernel", second = "pipeline=preshuffle";
    if (direct && c.split_k > 1 && c.op != Op::conv_bwd_weight) first = "a direct kernel", second = "split_k";
    return !first.empty() && refuse(out, TILEWISE_TEXT("{} and {}", first, second), TILEWISE_TEXT("one of the two"));
}

// Last, because it costs most; the buffer is kept, so that only a thread's first check allocates.
bool long_name(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr std::size_t kLongest = 2048;  // every field at its longest takes less
    thread_local std::string name;
    name.clear();
    name.reserve(kLongest);
    append_kernel_name(c, name);
    return name.size() > kMaxNameLength && refuse(out, TILEWISE_TEXT("a name of {} characters", name.size()),
                                                  TILEWISE_TEXT("at most {}: fewer options", kMaxNameLength));
}

// An option that replaces the product stays; one that refines it goes.
void correct_conflict(KernelConfig& c, const ArchSpec&) {
    if (c.explicit_gemm || c.specialization == Specialization::depthwise) c.num_groups_to_merge = 1;
    if (c.specialization == Specialization::depthwise) {
        c.explicit_gemm = false;
        c.stream_k = StreamK::off;
    }
    if (c.explicit_gemm) c.split_image = false;
    if (family_of(c) == FamilyId::direct_conv) {
        if (c.pipeline == Pipeline::preshuffle) c.pipeline = Pipeline::basic_v1;
        if (c.op != Op::conv_bwd_weight) c.split_k = 1;
    }
    if (c.pipeline == Pipeline::preshuffle) c.swap_ab = false;
}

constexpr ConfigRule kOptionRules[] = {
    {"option", "the arch file lists the options it has for each operation", no_option, correct_option},
    {"stream_or_split", "stream-K already divides the reduction", stream_and_split, correct_split},
    {"deterministic", "atomic sums vary from run to run, all others do not", wrong_determinism, correct_determinism},
    {"cluster", "a cluster is a power of two of tiles, or the parts of k of one tile, within the arch's limit",
     wrong_cluster, correct_cluster},
    {"groups_to_merge", "groups are merged in powers of two, up to where zeros dominate", wrong_merge, correct_merge},
    {"compile_time_rank", "extents known when compiled have the kernel's dimensions", wrong_rank, correct_rank},
    {"specialization_filter", "a specialization and the compile-time filter say the same", filter_contradicts,
     correct_filter},
    {"option_conflict", "some options replace what others refine", conflicting, correct_conflict},
    {"name_length", "a kernel's name stays readable and fits every log", long_name},
};

}  // namespace

std::span<const ConfigRule> option_rules() { return kOptionRules; }

}  // namespace tilewise
