// SPDX-License-Identifier: MIT
#include "select/runtime.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "build/build_testing.hpp"
#include "config/archs.hpp"
#include "device/forwarding_device.hpp"
#include "measure/record_csv.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"
#include "select/bench.hpp"
#include "select/checked_run.hpp"

namespace tilewise {
namespace {

const char* const kPlanned = "gemm:m=33,n=65,k=17,dtype=fp32,layout=rcr";

TEST(Runtime, ChoosesByNameOrByTheOptions) {
    auto runtime = open_runtime({}, embedded_archs());
    ASSERT_TRUE(runtime.ok()) << runtime.error().message;
    const Problem problem = *parse_problem(kPlanned);
    Choice choice;
    choice.options.strategy = Strategy::rules;
    const auto by_rules = choose_plan(*runtime, problem, choice);
    ASSERT_TRUE(by_rules.ok()) << by_rules.error().message;
    EXPECT_EQ(by_rules->source, PlanSource::rules);
    choice.kernel = by_rules->kernel->config;
    const auto named = choose_plan(*runtime, problem, choice);
    ASSERT_TRUE(named.ok()) << named.error().message;
    EXPECT_EQ(named->source, PlanSource::named);
    EXPECT_EQ(named->kernel->name, by_rules->kernel->name);
}

// Without a home there is no file; root of all users would write to /tuning.jsonl.
TEST(Runtime, WithoutAHomeTuningIsForThisProcess) {
    const build_testing::Variable cache("TILEWISE_CACHE_DIR", ""), home("HOME", ""), xdg("XDG_CACHE_HOME", "relative");
    auto runtime = open_runtime({}, embedded_archs());
    ASSERT_TRUE(runtime.ok()) << runtime.error().message;
    EXPECT_EQ(runtime->tuning->path(), "");
    EXPECT_EQ(runtime->records->path(), "");
}

TEST(Runtime, APackThatIsNoneIsAnError) {
    RuntimeOptions options;
    options.packs = {"/nonexistent/kernels.pack"};
    const auto runtime = open_runtime(options, embedded_archs());
    ASSERT_FALSE(runtime.ok());
    EXPECT_NE(runtime.error().message.find("/nonexistent/kernels.pack"), std::string::npos) << runtime.error().message;
}

// Records of its own, away from those of the machine, gone at the end.
class OwnRecords {
public:
    explicit OwnRecords(Runtime& runtime) : path_(std::filesystem::temp_directory_path() / name()) {
        runtime.records = std::make_unique<RecordStore>(path_, std::int64_t{1} << 20);
        runtime.dispatcher = std::make_unique<Dispatcher>(*runtime.device, *runtime.builder, runtime.tuning.get(),
                                                          runtime.records.get());
    }
    ~OwnRecords() { std::filesystem::remove(path_); }
    OwnRecords(const OwnRecords&) = delete;
    OwnRecords& operator=(const OwnRecords&) = delete;

    std::vector<Record> all() const {
        const auto records = read_records(path_);
        EXPECT_TRUE(records.ok()) << records.error().message;
        return records ? *records : std::vector<Record>{};
    }

private:
    static std::string name() { return "tilewise-runtime-" + std::to_string(getpid()) + ".csv"; }
    std::string path_;
};

TEST(Bench, TheFiguresFitTheTime) {
    auto runtime = open_runtime({}, embedded_archs());
    ASSERT_TRUE(runtime.ok()) << runtime.error().message;
    const OwnRecords records(*runtime);
    const Problem problem = *parse_problem(kPlanned);
    const auto outcome = bench_problem(*runtime, problem, {}, false);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    ASSERT_EQ(outcome->rows.size(), 1u);
    const BenchRow& row = outcome->rows.front();
    EXPECT_GT(row.us, 0);
    EXPECT_DOUBLE_EQ(row.tflops * row.us * 1e6, flops(problem));
    EXPECT_DOUBLE_EQ(row.gbps * row.us * 1e3, bytes_moved(problem));
    EXPECT_GT(row.roof, 0);
    ASSERT_EQ(records.all().size(), 1u) << "every measurement is recorded";
    const Record record = records.all().front();
    EXPECT_EQ(record.kernel_name, row.kernel->name);
    EXPECT_EQ(record.time_us, row.us);
    EXPECT_EQ(record.gbps, row.gbps);
    const Json json = bench_row_to_json(problem, row);
    EXPECT_EQ(*json.find("problem")->string(), kPlanned);
    EXPECT_EQ(*json.find("kernel")->string(), row.kernel->name);
}

// Its launches compute nothing.
class IdleDevice : public ForwardingDevice {
public:
    using ForwardingDevice::ForwardingDevice;
    Result<std::unique_ptr<const Launch>> prepare(std::shared_ptr<const Code>, const KernelArgs&, LaunchPlan) override {
        struct Idle : Launch {
            Status run(const KernelArgs&, Stream) const override { return {}; }
            Status pack_b(const KernelArgs&, void*, Stream) const override { return {}; }
        };
        return std::unique_ptr<const Launch>(std::make_unique<Idle>());
    }
};

TEST(CheckedRun, AWrongResultIsRecorded) {
    std::unique_ptr<Device> real;
    auto runtime = open_runtime({}, embedded_archs());
    ASSERT_TRUE(runtime.ok()) << runtime.error().message;
    real = std::move(runtime->device);
    runtime->device = std::make_unique<IdleDevice>(*real);
    const OwnRecords records(*runtime);
    const auto run = run_checked(*runtime, *parse_problem(kPlanned), {}, {false, true});
    ASSERT_TRUE(run.ok()) << run.error().message;
    ASSERT_FALSE(run->report->ok);
    ASSERT_EQ(records.all().size(), 1u);
    const Record record = records.all().front();
    EXPECT_EQ(record.status, RecordStatus::wrong);
    EXPECT_EQ(record.reason, describe(*run->report));
    EXPECT_EQ(record.kernel_name, run->plan.kernel->name);
    EXPECT_TRUE(run->notes.empty());
}

TEST(Bench, AKernelOfAnotherOperationIsUnsupported) {
    auto runtime = open_runtime({}, embedded_archs());
    ASSERT_TRUE(runtime.ok()) << runtime.error().message;
    const Problem conv = *parse_problem("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,dtype=fp32");
    const auto gemm = choose_plan(*runtime, *parse_problem(kPlanned), {});
    ASSERT_TRUE(gemm.ok()) << gemm.error().message;
    Choice choice;
    choice.kernel = gemm->kernel->config;
    const auto outcome = bench_problem(*runtime, conv, choice, false);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace tilewise
