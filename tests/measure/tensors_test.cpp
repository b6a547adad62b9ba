// SPDX-License-Identifier: MIT
#include "measure/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "measure/float_gemm.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

std::vector<const void*> pointers(const Tensors& t) {
    std::vector<const void*> all = {t.a().data, t.b().data, t.c().data};
    for (std::size_t i = 0; i < d_count(t.problem()); ++i) all.push_back(t.d(i).data);
    for (const void* p : {t.bias(), static_cast<const void*>(t.scale_a()), static_cast<const void*>(t.scale_b())}) {
        if (p != nullptr) all.push_back(p);
    }
    return all;
}

TEST(Tensors, PointersAreAlignedAsSaidAndNoMore) {
    for (const int align : {1, 2, 4, 8, 16, 32, 64, 128, 4096}) {
        const Tensors t =
            tensors_for("gemm:m=5,n=7,k=3,dtype=fp32,epilogue=bias,d=add,scale=row,align=" + std::to_string(align));
        for (const void* pointer : pointers(t)) {
            const auto address = reinterpret_cast<std::uintptr_t>(pointer);
            const std::uintptr_t least = std::max(align, 4);  // the elements must lie right
            EXPECT_EQ(address % least, 0u) << align;
            if (align < 64) {
                EXPECT_NE(address % (2 * least), 0u) << align;
            }
        }
    }
}

TEST(Tensors, ViewsFollowLayoutsAndStrides) {
    for (const char* layout : {"rcr", "rrr", "crr", "ccr", "rcc", "rrc", "crc", "ccc"}) {
        const Tensors t = tensors_for(std::string("gemm:m=5,n=7,k=9,batch=3,lda=17,ldb=18,ldc=19,layout=") + layout);
        const MatrixView views[] = {t.a(), t.b(), t.c()};
        for (int i = 0; i < 3; ++i) {
            const std::int64_t leading = 17 + i;
            EXPECT_EQ(views[i].row_stride, layout[i] == 'r' ? leading : 1);
            EXPECT_EQ(views[i].col_stride, layout[i] == 'r' ? 1 : leading);
            EXPECT_EQ(views[i].batch_stride, batch_stride(t.problem(), i));
        }
    }
}

TEST(Tensors, SameSeedSameBits) {
    for (const char* dtype : {"fp32", "fp16", "bf16", "fp8", "bf8", "int8"}) {
        const std::string text = std::string("gemm:m=33,n=20,k=10,epilogue=bias,beta=1,dtype=") + dtype;
        const Tensors one = tensors_for(text, 5), two = tensors_for(text, 5), other = tensors_for(text, 6);
        int different = 0;
        for (std::int64_t i = 0; i < 33; ++i) {
            for (std::int64_t j = 0; j < 10; ++j) {
                EXPECT_EQ(element(one.a(), 0, i, j), element(two.a(), 0, i, j));
                different += element(one.a(), 0, i, j) != element(other.a(), 0, i, j) ? 1 : 0;
            }
        }
        EXPECT_GT(different, 250) << dtype;
        EXPECT_NE(element(one.a(), 0, 0, 0), element(one.b(), 0, 0, 0)) << "each operand has its own numbers";
    }
}

TEST(Tensors, ValuesFillTheirRange) {
    for (const char* dtype : {"fp32", "fp16", "bf16", "fp8", "bf8", "int8"}) {
        const Tensors t = tensors_for(std::string("gemm:m=100,n=4,k=100,scale=row,dtype=") + dtype);
        const double limit = std::string(dtype) == "int8" ? 127 : 1;
        double low = 0, high = 0, sum = 0;
        for (std::int64_t i = 0; i < 100; ++i) {
            for (std::int64_t j = 0; j < 100; ++j) {
                const double value = element(t.a(), 0, i, j);
                ASSERT_LE(std::abs(value), limit);
                low = std::min(low, value);
                high = std::max(high, value);
                sum += value;
            }
        }
        EXPECT_LT(low, -0.98 * limit);
        EXPECT_GT(high, 0.98 * limit);
        EXPECT_LT(std::abs(sum) / 1e4, 0.03 * limit);
        for (std::int64_t i = 0; i < 100; ++i) {
            EXPECT_GE(t.scale_a()[i], 0.5f);
            EXPECT_LE(t.scale_a()[i], 2.0f);
        }
    }
}

TEST(Tensors, OutputIsPoisonedUnlessItIsRead) {
    for (const char* dtype : {"fp32", "fp16", "bf16", "fp8,out=fp8", "bf8,out=bf8", "int8", "int8,out=int8"}) {
        Tensors t = tensors_for(std::string("gemm:m=5,n=7,k=3,ldc=9,layout=rrr,dtype=") + dtype);
        for (int round = 0; round < 2; ++round) {
            for (std::int64_t i = 0; i < 35; ++i) {
                std::uint32_t bits = 0;
                std::memcpy(&bits, t.c().at(0, i / 7, i % 7), static_cast<std::size_t>(bytes_of(t.c().type)));
                EXPECT_EQ(bits, poison_bits(t.c().type));
            }
            set_element(t.c(), 0, 2, 2, 0.5);
            t.reset_output();
        }
    }
    Tensors t = tensors_for("gemm:m=5,n=7,k=3,beta=1");
    const double before = element(t.c(), 0, 1, 1);
    EXPECT_EQ(before, element(t.original_c(), 0, 1, 1));
    set_element(t.c(), 0, 1, 1, 99);
    t.reset_output();
    EXPECT_EQ(element(t.c(), 0, 1, 1), before);
}

std::string damage(const Tensors& t) {
    const Status status = t.check_guards();
    return status ? "" : status.error().message;
}

// Every byte of memory that belongs to no element is guarded.
TEST(Tensors, EveryByteAroundTheOutputIsGuarded) {
    const Tensors t =
        tensors_for("gemm:m=3,n=5,k=2,batch=2,ldc=8,batch_stride_c=40,dtype=bf16,layout=rrr,epilogue=bias,align=2");
    auto* c = static_cast<std::byte*>(t.c().data);
    std::set<std::int64_t> elements;
    for (std::int64_t i = 0; i < 30; ++i) {
        const auto offset = static_cast<std::byte*>(t.c().at(i / 15, i / 5 % 3, i % 5)) - c;
        elements.insert({offset, offset + 1});
    }
    const std::int64_t end = (40 + 2 * 8 + 5) * 2;
    for (std::int64_t offset = -256; offset < end + 256; ++offset) {
        const std::byte before = c[offset];
        c[offset] = before ^ std::byte{0x55};
        const std::string found = damage(t);
        if (elements.contains(offset)) {
            EXPECT_EQ(found, "") << offset;
        } else {
            EXPECT_NE(found.find("C: the guard at byte " + std::to_string(offset) + " "), std::string::npos) << found;
        }
        c[offset] = before;
    }
    EXPECT_EQ(damage(t), "");
}

TEST(Tensors, InputsMustNotChange) {
    Tensors t = tensors_for("gemm:m=3,n=5,k=2,epilogue=bias,d=add,scale=tensor,beta=1");
    for (void* pointer : {t.a().data, t.b().data, t.d(0).data, const_cast<void*>(t.bias())}) {
        auto* byte = static_cast<std::byte*>(pointer);
        *byte ^= std::byte{1};
        EXPECT_NE(damage(t).find("is an input and was changed"), std::string::npos);
        *byte ^= std::byte{1};
        EXPECT_EQ(damage(t), "");
    }
    set_element(t.a(), 0, 1, 1, NAN);
    t.seal_inputs();
    EXPECT_EQ(damage(t), "") << "changed on purpose";
}

TEST(Tensors, InputMatricesMayOverlapOrBeShared) {
    // Heads that lie next to each other in a row, and one B for the whole batch.
    const Tensors t = tensors_for("gemm:m=4,n=5,k=8,batch=3,lda=24,batch_stride_a=8,batch_stride_b=0,layout=rrr");
    EXPECT_EQ(t.b().at(0, 1, 1), t.b().at(2, 1, 1));
    for (std::int64_t b = 0; b < 3; ++b) {
        for (std::int64_t i = 0; i < 32; ++i) EXPECT_TRUE(std::isfinite(element(t.a(), b, i / 8, i % 8)));
    }
    EXPECT_EQ(damage(t), "");
}

TEST(Tensors, AnEmptyProblemHasTensors) { EXPECT_TRUE(Tensors::make(problem_of("gemm:m=0,n=4,k=8"), 1)); }

TEST(Tensors, RefusesWhatItCannotHold) {
#if !defined(TILEWISE_SANITIZED)  // which ends the program instead
    const auto made = Tensors::make(problem_of("gemm:m=4000000,n=4,k=60000000"), 1);
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message.find("no memory"), std::string::npos);
#endif
}

TEST(Tensors, SuggestedAlphaKeepsResultsInRange) {
    for (const char* out : {"int8", "fp16", "bf16"}) {
        const Tensors t = tensors_for(std::string("gemm:m=32,n=32,k=700,dtype=int8,out=") + out);
        FloatGemm how;
        how.alpha = suggested_alpha(t.problem());
        run_float_gemm(t, how);
        int large = 0;
        for (std::int64_t i = 0; i < 1024; ++i) large += std::abs(element(t.c(), 0, i / 32, i % 32)) > 120 ? 1 : 0;
        EXPECT_LT(large, 20) << out;
    }
    EXPECT_EQ(suggested_alpha(problem_of("gemm:m=32,n=32,k=700,dtype=int8")), 1);
}

}  // namespace
}  // namespace tilewise
