// SPDX-License-Identifier: MIT
// Fitting a chip's prices: times that were made from known prices give these back, whatever else is in the table.
#include "select/fit_prices.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/price_names.hpp"
#include "config/rule_set.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

std::vector<std::string> gemms() {
    std::vector<std::string> problems;
    for (const char* size : {"m=128,n=256,k=512", "m=4096,n=4096,k=4096", "m=1,n=8192,k=4096", "m=64,n=16384,k=1024",
                             "m=2048,n=512,k=8192", "m=333,n=777,k=1111", "m=8192,n=8192,k=256", "m=4,n=4096,k=4096"}) {
        for (const char* type : {"bf16,layout=rcr", "fp32,layout=rrr"}) {
            problems.push_back(std::string("gemm:") + size + ",dtype=" + type);
        }
    }
    return problems;
}

Record record_of(const std::string& problem, const std::string& kernel, double us) {
    Record record;
    record.problem = problem, record.kernel_name = kernel, record.time_us = us;
    return record;
}

// Times of every few kernels of the default set, by the prices of the arch.
std::vector<Record> times_of(const ArchSpec& arch, const std::vector<std::string>& problems, int each) {
    std::vector<Record> records;
    for (const std::string& text : problems) {
        const Problem problem = *parse_problem(text);
        const WorkProblem own(problem, arch, 1);
        const auto configs = expand(arch, problem.op, {problem.dtype_a, problem.dtype_b}, RuleSet::standard);
        EXPECT_TRUE(configs.ok());
        int i = 0;
        for (const KernelConfig& config : *configs) {
            if (!may_run(own.view, config, arch) || ++i % each != 0) continue;
            records.push_back(record_of(text, kernel_name(config), predicted_us(own, config)));
        }
    }
    return records;
}

Chip chip_of(const ArchSpec& arch) { return *find_chip(arch.chip); }

// But for prices that counts and launches are chosen by, which no time says anything of.
Chip perturbed(Chip chip, double most) {
    Random random(5);
    for (std::size_t i = 0; i < all_prices(chip.prices).size(); ++i) {
        const std::string name = price_name(i);
        if (name == "block_product.clustered_units_share" || name == "patch_conv.kept_cache_share" ||
            name == "clock.cycles_per_us" || name.find("_search.") != std::string::npos) {
            continue;
        }
        all_prices(chip.prices)[i].value *= std::exp(most * (static_cast<double>(random.between(-1000, 1000)) / 1000));
    }
    return chip;
}

TEST(FitPrices, GivesBackThePricesThatTimesWereMadeFrom) {
    const ArchSpec& arch = arch_named("cpu-avx512");
    Chip start = perturbed(chip_of(arch), 0.4);
    const auto records = times_of(arch, gemms(), 1);
    ASSERT_GT(records.size(), 100u);
    const auto fit = fit_prices(start, records, embedded_archs(), 1);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    const FamilyFit& family = fit->families.at(FamilyId::blocked_gemm);
    EXPECT_EQ(family.records, records.size());
    EXPECT_GT(family.before, 0.02);
    EXPECT_LT(family.after, 0.005);
    const auto& found = fit->chip.prices.blocked_gemm;
    const auto& known = arch.prices.blocked_gemm;
    const auto expect_near = [](const Price& a, const Price& b) { EXPECT_NEAR(a.value / b.value, 1, 0.01); };
    expect_near(found.vector_read_steps, known.vector_read_steps);
    expect_near(found.not_hidden_share, known.not_hidden_share);
    expect_near(found.far_reread_share, known.far_reread_share);
    expect_near(found.near_reread_share, known.near_reread_share);
    expect_near(found.turned_store_share, known.turned_store_share);
    EXPECT_EQ(fit->chip.prices.blocked_conv.call_steps, start.prices.blocked_conv.call_steps) << "no record has it";
    const auto& unused = fit->unused;
    EXPECT_TRUE(std::any_of(unused.begin(), unused.end(),
                            [](std::size_t index) { return price_name(index) == "blocked_conv.call_steps"; }));
}

TEST(FitPrices, BringsPredictionsOfEveryKindOfKernelBack) {
    const ArchSpec& arch = arch_named("sm_90a");
    const Chip start = perturbed(chip_of(arch), 0.2);
    std::vector<std::string> problems = gemms();
    const std::string layer = "n=32,g=1,c=64,k=64,in=56x56,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc";
    const std::string small = "n=2,g=1,c=256,k=128,in=14x14,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc";
    const std::string deep = "n=32,g=96,c=96,k=96,in=56x56,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc";
    for (const char* op : {"conv_fwd:", "conv_bwd_data:", "conv_bwd_weight:"}) {
        for (const std::string& text : {layer, small, deep}) problems.push_back(op + text);
    }
    const auto records = times_of(arch, problems, 13);
    const auto fit = fit_prices(start, records, embedded_archs(), 1);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    EXPECT_GT(fit->families.size(), 6u);
    for (const auto& [family, errors] : fit->families) {
        // A plan that other prices choose is another launch than the one that was timed.
        const bool is_searched = family == FamilyId::shifted_wgrad || family == FamilyId::first_layer_conv ||
                                 family == FamilyId::depthwise_channel_slice || is_patch_conv(family) ||
                                 family == FamilyId::patch_wgrad;
        EXPECT_LT(errors.after, is_searched ? 0.1 : 0.005) << name_of(family) << " of " << errors.records;
        EXPECT_LE(errors.after, errors.before) << name_of(family);
    }
}

TEST(FitPrices, MakesDoWithFewRecords) {
    const ArchSpec& arch = arch_named("sm_90a");
    auto records = times_of(arch, {"gemm:m=4096,n=4096,k=4096,dtype=bf16,layout=rcr"}, 1);
    records.resize(1);
    records.front().time_us *= 2;
    const auto one = fit_prices(chip_of(arch), records, embedded_archs(), 1);
    ASSERT_TRUE(one.ok());
    EXPECT_LT(one->families.begin()->second.after, 1e-3);
    for (const Price& price : all_prices(one->chip.prices)) EXPECT_TRUE(std::isfinite(price.value));

    records.resize(50, records.front());  // the same again and again
    const auto same = fit_prices(chip_of(arch), records, embedded_archs(), 1);
    ASSERT_TRUE(same.ok());
    EXPECT_LT(same->families.begin()->second.after, 1e-3);
}

TEST(FitPrices, HoldsPricesAsStronglyAsAsked) {
    const ArchSpec& arch = arch_named("sm_90a");
    auto records = times_of(arch, {"gemm:m=4096,n=4096,k=4096,dtype=bf16,layout=rcr"}, 20);
    for (Record& record : records) record.time_us *= 2;
    double moved = 1e9;
    for (const double hold : {1e-9, 1.0, 1e6}) {
        const auto fit = fit_prices(chip_of(arch), records, embedded_archs(), 1, {.hold = hold});
        ASSERT_TRUE(fit.ok());
        double farthest = 0;
        for (const std::size_t i : fit->fitted) {
            const double ratio = all_prices(fit->chip.prices)[i].value / all_prices(arch.prices)[i].value;
            farthest = std::max(farthest, std::abs(std::log(ratio)));
        }
        EXPECT_LT(farthest, moved) << hold;
        moved = farthest;
    }
    EXPECT_LT(moved, 1e-3);
}

TEST(FitPrices, LeavesOutWhatIsNoRecordOfTheChip) {
    const ArchSpec& arch = arch_named("sm_90a");
    auto records = times_of(arch, {"gemm:m=512,n=512,k=512,dtype=bf16,layout=rcr"}, 20);
    const std::size_t usable = records.size();
    const Record good = records.front();
    records.push_back(record_of(good.problem, good.kernel_name, 0));
    records.push_back(record_of(good.problem, good.kernel_name, std::nan("")));
    records.push_back(record_of("gemm:m=oops", good.kernel_name, 5));
    records.push_back(record_of(good.problem, "no kernel", 5));
    records.push_back(
        record_of(good.problem, times_of(arch_named("cpu-avx2"), {good.problem}, 1).front().kernel_name, 5));
    records.push_back(good);
    records.back().status = RecordStatus::wrong;
    const auto fit = fit_prices(chip_of(arch), records, embedded_archs(), 1);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    EXPECT_EQ(fit->left_out, 6u);
    std::size_t used = 0;
    for (const auto& [family, errors] : fit->families) used += errors.records;
    EXPECT_EQ(used, usable);
    const FamilyId none = FamilyId::gemv;
    EXPECT_FALSE(fit_prices(chip_of(arch), {good}, embedded_archs(), 1, {.family = &none}).ok());
    EXPECT_FALSE(fit_prices(chip_of(arch), {}, embedded_archs(), 1).ok());
}

}  // namespace
}  // namespace tilewise
