// SPDX-License-Identifier: MIT
// The end of every product: raw sums become
//   ops(alpha * scale_a * scale_b * sum + beta * C)
// in fp32, in this order (the CPU kernels and the reference do the same), and then elements of C. Integer results are computed in
// double, which has every 32-bit integer. Sums are finished in runs, neighbours in C, so that C, D and bias are read by one access for
// each run. A chain that is known is short enough for unrolled code, from registers; RunTimeChain is finished in rolled loops, but for
// sums that are only multiplied by alpha.
#pragma once
#include "activation.hpp"
#include "chain.hpp"
#include "packet.hpp"

namespace tilewise::gpu {

// ---- Which sums are only multiplied ----

// Nothing to do but to multiply by alpha: C is not read, and there is no scale and no operation.
TILEWISE_DEVICE bool is_plain(const KernelArgs& args) {
    return args.beta == 0.0f && args.scale == KernelScale::none && args.epilogue[0] == KernelEpilogueOp::none;
}
template <class Chain>
TILEWISE_DEVICE bool is_plain(const KernelArgs& args) {
    if constexpr (Chain::kFixed) return Chain::kPlain;
    return is_plain(args);
}

// ---- Types ----

// Integer sums stay exact in integer results, unless a step is not.
template <class Sum, class Out>
inline constexpr bool kExact = kSame<Sum, int>&& kSame<Out, Int32>;

template <bool exact>
struct FinishTypes {
    using Real = float;   // of the steps
    using Value = float;  // of a finished element on its way to C
};
template <>
struct FinishTypes<true> {
    using Real = double;
    using Value = int;
};
template <class Sum, class Out>
using RealOf = typename FinishTypes<kExact<Sum, Out>>::Real;
template <class Sum, class Out>
using ValueOf = typename FinishTypes<kExact<Sum, Out>>::Value;

template <class Out, class Value>
TILEWISE_DEVICE typename Out::Storage element_of(Value value) {
    if constexpr (kSame<Value, int>) {
        return value;  // of Int32
    } else {
        return Out::from_float(value);
    }
}

// V values as elements of type T.
template <class T, int V, class Value>
TILEWISE_DEVICE Packet<V * T::bytes> pack_values(const Value (&x)[V]) {
    Packet<V * T::bytes> p;
    if constexpr (T::bytes == 4) {
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) p.words[i] = __builtin_bit_cast(u32, element_of<T>(x[i]));
    } else if constexpr (V == 1) {
        p.value = static_cast<decltype(p.value)>(element_of<T>(x[0]));
    } else if constexpr (T::bytes == 1 && V == 2) {
        p.value = pack_bytes<T>(x[0], x[1]);
    } else if constexpr (T::bytes == 1) {
        TILEWISE_UNROLL
        for (int i = 0; i < V / 4; ++i) {
            p.words[i] = u32(pack_bytes<T>(x[4 * i], x[4 * i + 1])) | u32(pack_bytes<T>(x[4 * i + 2], x[4 * i + 3]))
                                                                          << 16;
        }
    } else {
        TILEWISE_UNROLL
        for (int i = 0; i < V / 2; ++i) p.words[i] = pack_pair<T>(x[2 * i], x[2 * i + 1]);
    }
    return p;
}

// ---- Places ----

// Where element (row, col) of a batch entry is, in C and in every D tensor.
TILEWISE_DEVICE Index c_offset(const KernelArgs& args, Index batch, Index row, Index col) {
    const Index at = batch * args.c.batch_stride + col * args.c.col_stride;
    if (args.c_image_rows == 0) return at + row * args.c.row_stride;
    const Index image = row / args.c_image_rows;
    return at + image * args.c_image_stride + (row - image * args.c_image_rows) * args.c.row_stride;
}

// The direction in which the elements of a run are neighbours: channels are batch entries of one column each (depthwise).
enum class Along { columns, rows, channels };

// The first element of a run, and how many there are.
struct RunPlace {
    Index at;    // in C and in every D tensor
    Index bias;  // in the bias
    Index row, col;
    int count;
};
TILEWISE_DEVICE RunPlace run_place(const KernelArgs& args, Index batch, Index row, Index col, int count) {
    return {c_offset(args, batch, row, col), batch * args.bias_batch_stride + col, row, col, count};
}

// ---- Reading ----

template <class T, class Real>
TILEWISE_DEVICE Real real_of(typename T::Storage element) {
    if constexpr (kSame<T, Int32>) {
        return Real(element);
    } else {
        return T::to_float(element);
    }
}

// Whether V elements can be read by one access.
template <class T, int V>
inline constexpr bool kIsAccess = V > 1 && V* T::bytes >= 4 && V* T::bytes <= 16 && !kSame<T, Int32>;

template <class T, int V, class Real>
TILEWISE_DEVICE void unpack_access(const Packet<V * T::bytes>& packet, Real (&x)[V]) {
    constexpr int kBytes = V * T::bytes, kEach = 4 / T::bytes;
    TILEWISE_UNROLL
    for (int w = 0; w < kBytes / 4; ++w) {
        float some[kEach];
        word_to_floats<T>(packet.words[w], some);
        TILEWISE_UNROLL
        for (int i = 0; i < kEach; ++i) x[w * kEach + i] = some[i];
    }
}

// The first `count` of V elements; the others are 0. Runs that are whole and lie on the boundary of an access come by one.
template <class T, int V, class Real>
TILEWISE_DEVICE void read_run(const void* data, Index at, int count, Real (&x)[V]) {
    const auto* from = static_cast<const typename T::Storage*>(data) + at;
    if constexpr (kIsAccess<T, V>) {
        if (count >= V && reinterpret_cast<u64>(from) % (V * T::bytes) == 0) {
            return unpack_access<T>(load_global<V * T::bytes>(from), x);
        }
    }
    TILEWISE_UNROLL
    for (int i = 0; i < V; ++i) x[i] = i < count ? real_of<T, Real>(from[i]) : Real(0);
}

// Whether all runs of V that begin at multiples of V are aligned, in C, D and bias as far as the chain reads them.
template <class Chain, class Out, int V>
TILEWISE_DEVICE bool has_aligned_runs(const KernelArgs& args) {
    u64 bits = 0;
    if constexpr (Chain::kHasBias) bits |= reinterpret_cast<u64>(args.bias) | u64(args.bias_batch_stride * Out::bytes);
    if constexpr (Chain::kReadsTensors) {
        const Index longer = args.c.row_stride == 1 ? args.c.col_stride : args.c.row_stride;
        bits |= u64((longer | args.c.batch_stride | args.c_image_stride) * Out::bytes);
        if (Chain::kBeta) bits |= reinterpret_cast<u64>(args.c.data);
        TILEWISE_UNROLL
        for (int i = 0; i < Chain::kTensors; ++i) bits |= reinterpret_cast<u64>(args.d[i]);
    }
    return bits % (V * Out::bytes) == 0;
}

// ---- Steps ----

// The terms that a run reads beside its sums: when it comes to them,
struct ReadLater {
    static constexpr bool kHeld = false;
};
// or all before, so that many accesses are under way at a time. Neighbours are columns or channels, and every run is aligned.
template <class Chain, class Out, int V>
struct HeldTerms {
    static constexpr bool kHeld = true;
    using Access = Packet<V * Out::bytes>;
    Access bias, c, d[Chain::kTensors > 0 ? Chain::kTensors : 1];
};
// An aligned run, or, where it is nowhere, the first one: branches would let accesses wait for each other.
template <class Out, int V>
TILEWISE_DEVICE Packet<V * Out::bytes> read_access(const void* data, Index at, int count) {
    const auto* first = static_cast<const typename Out::Storage*>(data);
    return load_global<V * Out::bytes>(count >= V ? first + at : first);
}
template <class Chain, class Out, int V>
TILEWISE_DEVICE void hold_bias(const KernelArgs& args, const RunPlace& place, HeldTerms<Chain, Out, V>& terms) {
    if constexpr (Chain::kHasBias) terms.bias = read_access<Out, V>(args.bias, place.bias, place.count);
}
// All but the bias.
template <class Chain, class Out, int V>
TILEWISE_DEVICE void hold_tensors(const KernelArgs& args, const RunPlace& place, HeldTerms<Chain, Out, V>& terms) {
    if constexpr (Chain::kBeta) terms.c = read_access<Out, V>(args.c.data, place.at, place.count);
    TILEWISE_UNROLL
    for (int i = 0; i < Chain::kTensors; ++i) {
        terms.d[i] = read_access<Out, V>(args.d[i], place.at, place.count);
    }
}

// The sums of a run on their way to elements of type Out.
template <class Out, Along along, class Real, int V, class Terms>
struct FinishRun {
    const KernelArgs& args;
    const RunPlace& place;
    const Terms& terms;
    Real x[V];

    TILEWISE_DEVICE void scale_rows() {
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) {
            const Index row = place.row + (along == Along::rows ? i : 0),
                        col = place.col + (along == Along::columns ? i : 0);
            if (i < place.count) x[i] = x[i] * args.scale_a[row] * args.scale_b[col];
        }
    }
    TILEWISE_DEVICE void add_c() {
        Real c[V];
        if constexpr (Terms::kHeld) {
            unpack_access<Out>(terms.c, c);
        } else {
            if (args.beta == 0.0f) return;
            read_run<Out>(args.c.data, place.at, place.count, c);
        }
        // Without beta it does not matter what C holds.
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) x[i] = args.beta == 0.0f ? x[i] : x[i] + args.beta * c[i];
    }
    TILEWISE_DEVICE void add_bias() {
        constexpr int kBiases = along == Along::rows ? 1 : V;
        Real bias[kBiases];
        if constexpr (Terms::kHeld) {
            unpack_access<Out>(terms.bias, bias);
        } else {
            read_run<Out>(args.bias, place.bias, place.count, bias);
        }
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) x[i] += bias[kBiases == 1 ? 0 : i];
    }
    TILEWISE_DEVICE void combine(KernelEpilogueOp op, int tensor) {
        Real d[V];
        if constexpr (Terms::kHeld) {
            unpack_access<Out>(terms.d[tensor], d);
        } else {
            read_run<Out>(args.d[tensor], place.at, place.count, d);
        }
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) x[i] = op == KernelEpilogueOp::add ? x[i] + d[i] : x[i] * d[i];
    }
    TILEWISE_DEVICE void apply(KernelEpilogueOp op, int tensor) {
        if (op == KernelEpilogueOp::bias) return add_bias();
        if (reads_d(op)) return combine(op, tensor);
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) {
            if (op == KernelEpilogueOp::relu) {
                x[i] = x[i] < 0 ? 0 : x[i];
            } else {
                x[i] = activate(op, float(x[i]));
            }
        }
    }

    template <class Chain, int i = 0, int tensor = 0>
    TILEWISE_DEVICE void apply_chain() {
        if constexpr (i < Chain::kCount) {
            apply(Chain::kOps[i], tensor);
            apply_chain<Chain, i + 1, tensor + (reads_d(Chain::kOps[i]) ? 1 : 0)>();
        }
    }
    TILEWISE_DEVICE void apply_all() {
        int tensor = 0;
        TILEWISE_ROLLED
        for (int i = 0; i < kMaxKernelEpilogueOps && args.epilogue[i] != KernelEpilogueOp::none; ++i) {
            apply(args.epilogue[i], tensor);
            tensor += reads_d(args.epilogue[i]) ? 1 : 0;
        }
    }
};

template <class Chain>
TILEWISE_DEVICE KernelScale scale_kind(const KernelArgs& args) {
    if constexpr (Chain::kFixed) return Chain::kScale;
    return args.scale;
}

// Sums that are only multiplied.
template <class Out, class Sum>
TILEWISE_DEVICE ValueOf<Sum, Out> finish_plain(const KernelArgs& args, Sum sum) {
    if constexpr (kExact<Sum, Out>) {
        return args.alpha == 1.0f ? sum : Int32::from_double(double(sum) * args.alpha);
    } else {
        return float(sum) * args.alpha;
    }
}

// The sums of a run made values of C. Those beyond place.count are anything.
template <class Chain, class Out, Along along, int V, class Sum, class Terms = ReadLater>
TILEWISE_DEVICE void finish_run(const KernelArgs& args, const Sum (&sums)[V], const RunPlace& place,
                                ValueOf<Sum, Out> (&values)[V], const Terms& terms = {}) {
    if constexpr (Chain::kFixed && Chain::kPlain) {
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) values[i] = finish_plain<Out>(args, sums[i]);
    } else {
        FinishRun<Out, along, RealOf<Sum, Out>, V, Terms> run{args, place, terms, {}};
        const KernelScale scale = scale_kind<Chain>(args);
        float factor = args.alpha;
        if (scale == KernelScale::tensor) factor *= args.scale_a[0] * args.scale_b[0];
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) run.x[i] = RealOf<Sum, Out>(sums[i]) * factor;
        if (scale == KernelScale::row) run.scale_rows();
        if constexpr (Chain::kFixed) {
            if constexpr (Chain::kBeta) run.add_c();
            run.template apply_chain<Chain>();
        } else {
            run.add_c();
            run.apply_all();
        }
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) {
            if constexpr (kExact<Sum, Out>) {
                values[i] = Int32::from_double(run.x[i]);
            } else {
                values[i] = run.x[i];
            }
        }
    }
}

// ---- From registers: unrolled code ----

// Whether that may finish the sums: the chain is known, and its runs of V are aligned where V is not 1; or one operation at most is left.
template <class Chain, class Out, class Sum, int V = 1>
TILEWISE_DEVICE bool finishes_in_registers(const KernelArgs& args) {
    if constexpr (!Chain::kFixed) {
        return is_plain(args) && (!kExact<Sum, Out> || args.alpha == 1.0f);
    } else if constexpr (V > 1 && !Chain::kPlain) {
        return has_aligned_runs<Chain, Out, V>(args);
    } else {
        return true;
    }
}
template <class Chain, class Out, Along along, int V, class Sum, class Terms = ReadLater>
TILEWISE_DEVICE void finish_in_registers(const KernelArgs& args, const Sum (&sums)[V], const RunPlace& place,
                                         ValueOf<Sum, Out> (&values)[V], const Terms& terms = {}) {
    if constexpr (Chain::kFixed) {
        finish_run<Chain, Out, along>(args, sums, place, values, terms);
    } else {
        TILEWISE_UNROLL
        for (int i = 0; i < V; ++i) {
            if constexpr (kExact<Sum, Out>) {
                values[i] = sums[i];
            } else {
                values[i] = float(sums[i]) * args.alpha;
            }
        }
    }
}

// ---- Writing ----

// The first `count` of V values; whole runs that lie on the boundary of an access by one.
template <class Out, int V, class Value>
TILEWISE_DEVICE void write_run(const KernelArgs& args, const RunPlace& place, const Value (&values)[V]) {
    constexpr int kBytes = V * Out::bytes;
    auto* to = static_cast<typename Out::Storage*>(args.c.data) + place.at;
    if constexpr (V > 1 && kBytes <= 16) {
        if (place.count >= V && reinterpret_cast<u64>(to) % kBytes == 0) {
            store_global<kBytes>(to, pack_values<Out>(values));
            return;
        }
    }
    TILEWISE_UNROLL
    for (int i = 0; i < V; ++i) {
        if (i < place.count) to[i] = element_of<Out>(values[i]);
    }
}

// ---- One element ----

template <class Chain, class Out, class Sum>
TILEWISE_DEVICE ValueOf<Sum, Out> finish(const KernelArgs& args, Sum sum, Index batch, Index row, Index col) {
    const Sum sums[1] = {sum};
    ValueOf<Sum, Out> values[1];
    finish_run<Chain, Out, Along::columns>(args, sums, run_place(args, batch, row, col, 1), values);
    return values[0];
}
template <class Out, class Value>
TILEWISE_DEVICE void store(const KernelArgs& args, Value value, Index batch, Index row, Index col) {
    static_cast<typename Out::Storage*>(args.c.data)[c_offset(args, batch, row, col)] = element_of<Out>(value);
}

}  // namespace tilewise::gpu
