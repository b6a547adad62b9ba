// SPDX-License-Identifier: MIT
// A Problem says what to compute. It is a checked value with a one-line text; Gemm and Conv build one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tilewise/error.hpp"

namespace tilewise {

// An operand as a caller stores it.
struct Tensor {
    std::string dtype;
    std::vector<std::int64_t> shape, strides;  // outermost first; strides in elements
    std::int64_t bytes = 0;                    // from the first element to the end of the last

    std::int64_t elements() const {
        std::int64_t count = 1;
        for (const std::int64_t extent : shape) count *= extent;
        return count;
    }
};

class Problem {
public:
    // From the text or JSON of docs/problems.md.
    static Result<Problem> parse(const std::string& text) {
        const auto one_form = detail::text_of([&](char** out) { return tilewise_problem_text(text.c_str(), out); });
        if (!one_form) return one_form.error();
        Problem problem(*one_form);
        const tilewise_status code = tilewise_problem_work(text.c_str(), &problem.flops_, &problem.bytes_);
        if (code != TILEWISE_OK) return Error::last(code);
        return problem;
    }

    const std::string& text() const { return text_; }
    double flops() const { return flops_; }
    double bytes() const { return bytes_; }  // when every operand moves once

    // "a", "b", "c", "bias", "d0", ...: see tilewise_problem_operand.
    Result<Tensor> operand(const std::string& name) const {
        tilewise_tensor from{};
        from.size = sizeof(from);
        const tilewise_status code = tilewise_problem_operand(text_.c_str(), name.c_str(), &from);
        if (code != TILEWISE_OK) return Error::last(code);
        return Tensor{
            from.dtype, {from.shape, from.shape + from.rank}, {from.strides, from.strides + from.rank}, from.bytes};
    }

    // All of it as JSON: see tilewise_problem_describe.
    Result<std::string> describe() const {
        return detail::text_of([&](char** out) { return tilewise_problem_describe(text_.c_str(), out); });
    }

    bool operator==(const Problem& other) const { return text_ == other.text_; }

private:
    explicit Problem(std::string text) : text_(std::move(text)) {}

    std::string text_;
    double flops_ = 0, bytes_ = 0;
};

// The fields of both builders, with the words of docs/problems.md.
template <class Builder>
class ProblemBuilder {
public:
    Builder& dtype(std::string word) { return dtype_ = std::move(word), self(); }
    Builder& layout(std::string word) { return layout_ = std::move(word), self(); }
    // Any further field: option("math", "fast").
    Builder& option(const std::string& key, const std::string& value) {
        options_ += (options_.empty() ? "" : ", ") + detail::quoted(key) + ": " + detail::quoted(value);
        return self();
    }
    Builder& out(const std::string& dtype) { return option("out", dtype); }
    Builder& epilogue(const std::string& operations) { return option("epilogue", operations); }  // "bias+gelu"
    Builder& d(const std::string& operations) { return option("d", operations); }                // "add+mul"
    Builder& with_beta() { return option("beta", "1"); }
    Builder& align(std::int64_t bytes) { return option("align", std::to_string(bytes)); }
    Builder& workspace(std::int64_t bytes) { return option("workspace", std::to_string(bytes)); }
    Builder& deterministic() { return option("deterministic", "1"); }

protected:
    static const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
    // As JSON; empty where there are none.
    std::string options() const { return options_.empty() ? "" : "{" + options_ + "}"; }
    static Result<Problem> parsed(const Result<std::string>& text) {
        if (!text) return text.error();
        return Problem::parse(*text);
    }

    std::string dtype_ = "fp32", layout_;

private:
    std::string options_;  // members of a JSON object

    Builder& self() { return static_cast<Builder&>(*this); }
};

// Gemm(64, 96, 128).dtype("bf16").layout("rcr").epilogue("bias+gelu").build()
class Gemm : public ProblemBuilder<Gemm> {
public:
    Gemm(std::int64_t m, std::int64_t n, std::int64_t k) : m_(m), n_(n), k_(k) {}
    Gemm& batch(std::int64_t count) { return batch_ = count, *this; }

    Result<Problem> build() const {
        tilewise_gemm from{};
        from.size = sizeof(from);
        from.m = m_, from.n = n_, from.k = k_, from.batch = batch_;
        from.dtype = dtype_.c_str();
        from.layout = or_null(layout_);
        const std::string more = options();
        from.options = or_null(more);
        return parsed(detail::text_of([&](char** out) { return tilewise_gemm_text(&from, out); }));
    }

private:
    std::int64_t m_, n_, k_, batch_ = 1;
};

enum class Direction { forward, backward_data, backward_weight };

// Conv(Direction::forward).images(8).groups(2).channels(96, 96).input({56, 56}).filter({3, 3}).padding({1, 1}).build()
class Conv : public ProblemBuilder<Conv> {
public:
    using Extents = std::initializer_list<std::int64_t>;

    explicit Conv(Direction direction) : direction_(direction) { from_.size = sizeof(from_); }

    Conv& images(std::int64_t count) { return from_.n = count, *this; }
    Conv& groups(std::int64_t count) { return from_.g = count, *this; }
    // Totals over the groups.
    Conv& channels(std::int64_t in, std::int64_t out) { return from_.c = in, from_.k = out, *this; }
    // One to three extents, outermost first; the number of them is the number of spatial dimensions.
    Conv& input(Extents extents) {
        from_.dims = static_cast<std::int32_t>(extents.size());
        return set(from_.in, extents);
    }
    Conv& filter(Extents extents) { return set(from_.filter, extents); }
    Conv& stride(Extents extents) { return set(from_.stride, extents); }
    Conv& dilation(Extents extents) { return set(from_.dilation, extents); }
    Conv& padding(Extents both) { return padding(both, both); }
    Conv& padding(Extents before, Extents after) { return set(from_.pad_before, before), set(from_.pad_after, after); }

    Result<Problem> build() const {
        constexpr const char* kOps[] = {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"};
        if (too_many_) return Error{TILEWISE_USAGE, "a convolution has at most 3 spatial dimensions"};
        tilewise_conv from = from_;
        from.op = kOps[static_cast<int>(direction_)];
        from.dtype = dtype_.c_str();
        from.layout = or_null(layout_);
        const std::string more = options();
        from.options = or_null(more);
        return parsed(detail::text_of([&](char** out) { return tilewise_conv_text(&from, out); }));
    }

private:
    Conv& set(std::int64_t (&to)[3], Extents extents) {
        std::size_t i = 0;
        for (const std::int64_t extent : extents) {
            if (i == 3) return too_many_ = true, *this;
            to[i++] = extent;
        }
        return *this;
    }

    Direction direction_;
    tilewise_conv from_{};
    bool too_many_ = false;
};

}  // namespace tilewise
