// SPDX-License-Identifier: MIT
#include "measure/record.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "base/files.hpp"
#include "config/archs.hpp"
#include "config/family_id.hpp"
#include "device/null/null_device.hpp"
#include "measure/record_csv.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

Record plain_record() {
    Record record;
    record.device = "A CPU; cpu-avx2; 2 threads";
    record.problem = "gemm:m=1,n=2,k=3,dtype=fp32,layout=rcr";
    record.kernel_name = "kernel@cpu-avx2";
    record.time_us = 0.1 + 0.2;
    record.spread = 1e-300;
    record.samples = 11;
    record.tflops = 1.0 / 3;
    record.gbps = std::numeric_limits<double>::max();
    record.repro = "tilewise bench gemm:m=1,n=2,k=3,dtype=fp32,layout=rcr";
    return record;
}

std::string text_of(const std::vector<Record>& records) {
    std::string text = record_header() + '\n';
    for (const Record& record : records) text += record_to_csv(record) + '\n';
    return text;
}

TEST(RecordCsv, HasTheColumnsThatProgramsRelyOn) {
    EXPECT_EQ(record_header(),
              "schema,set,network,device,chip,arch,driver,clock_mhz,problem,kernel_name,kernel_id,kernel_family,"
              "code_digest,status,reason,predicted_us,time_us,spread,samples,time2_us,max_error,tflops,gbps,roof,"
              "reference_us,started,repro");
}

TEST(RecordCsv, ComesBackAsItWas) {
    std::vector<Record> records(8, plain_record());
    for (std::size_t i = 1; i < records.size(); ++i) records[i].status = static_cast<RecordStatus>(i - 1);
    records[2].reason = "line one,\n\"line two\",\r\n\n";
    records[3].reason = "\"";
    records[4].reason = ",";
    records[5] = Record{};
    records[5].reason = "a\rb";
    records[6].max_error = std::numeric_limits<double>::infinity();
    records[7].predicted_us = records[7].time2_us = records[7].reference_us = records[7].clock_mhz = 0.1;
    for (const Record& record : records) {
        const auto again = record_from_csv(record_to_csv(record));
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_EQ(*again, record);
    }
    const auto all = records_from_csv(text_of(records), "here");
    ASSERT_TRUE(all.ok()) << all.error().message;
    EXPECT_EQ(*all, records);
}

TEST(RecordCsv, ANumberThatWasNotMeasuredIsAnEmptyCell) {
    Record failed;
    failed.status = RecordStatus::crash;
    EXPECT_EQ(record_to_csv(failed), "2,,,,,,,,,,,,,crash,,,,,0,,,,,,,,");
    failed.samples = 1;
    EXPECT_EQ(record_to_csv(failed), "2,,,,,,,,,,,,,crash,,,0,0,1,,,0,0,0,,,");
}

TEST(RecordCsv, ColumnsMayBeInAnyOrderWithOthersBetween) {
    const auto records = records_from_csv(
        "more,repro,started,reference_us,roof,gbps,tflops,max_error,time2_us,samples,spread,time_us,predicted_us,"
        "reason,status,code_digest,kernel_family,kernel_id,kernel_name,problem,clock_mhz,driver,arch,chip,device,"
        "network,set,schema\r\nx,r,t,9,8,5,4,7,6,3,2,1.5,,why,timeout,c,f,i,k,p,10,v,a,h,d,n,s,2\r\n\n",
        "here");
    ASSERT_TRUE(records.ok()) << records.error().message;
    const Record want{2,     "s", "n", "d", "h", "a", "v", 10, "p", "k", "i", "f", "c", RecordStatus::timeout,
                      "why", {},  1.5, 2,   3,   6,   7,   4,  5,   8,   9,   "t", "r"};
    EXPECT_EQ(*records, std::vector<Record>{want});
}

TEST(RecordCsv, BadInputIsNamedWithFileLineAndColumn) {
    const std::string good = record_to_csv(plain_record()) + '\n', header = record_header() + '\n';
    Record broken_lines = plain_record();
    broken_lines.reason = "two\nlines";
    const std::string two = record_to_csv(broken_lines) + '\n';
    const auto with = [](std::size_t cell, const std::string& text) {
        std::string line;
        for (std::size_t i = 0; i < 27; ++i) line += (i == 0 ? "" : ",") + (i == cell ? text : i == 0 ? "2" : "");
        return line + '\n';
    };
    const struct {
        std::string text, told;
    } kCases[] = {
        {"", "line 1: there is no header"},
        {"schema,device\n", "line 1: there is no column set"},
        {header + good + "1,2\n", "line 3: 2 cells; need 27"},
        {header + with(0, "1"), "line 2: column schema: have '1'; need schema 2"},
        {header + with(13, "fine"), "line 2: column status: have 'fine'; need one of ok, "},
        {header + with(13, "ok") + with(18, "0"), "line 2: column samples"},
        {header + two + with(13, "ok"), "line 4: column samples: have ''; need a whole number"},
        {header + good + good.substr(0, 20) + "\"", "line 3: a quote"},
        {header + "\"1", "line 2: a quote"},
        {header + "\"1\"x,\n", "line 2: a quote"},
    };
    for (const auto& [text, told] : kCases) {
        const auto records = records_from_csv(text, "some.csv");
        ASSERT_FALSE(records.ok()) << text;
        EXPECT_NE(records.error().message.find("'some.csv', " + told), std::string::npos) << records.error().message;
    }
    for (const char* number : {"x", "1 ", "-1", "nan", "inf", "1e999", "1,5"}) {
        std::string line = good;
        line.replace(line.find("0.30000000000000004"), 19, number);
        const auto records = records_from_csv(header + line, "some.csv");
        ASSERT_FALSE(records.ok()) << number;
        EXPECT_NE(records.error().message.find("line 2: "), std::string::npos) << records.error().message;
    }
}

TEST(RecordCsv, AFileIsRead) {
    const std::string path = std::filesystem::temp_directory_path() / ("tilewise-records-" + std::to_string(getpid()));
    ASSERT_TRUE(write_file(path, text_of({plain_record()})).ok());
    const auto records = read_records(path);
    std::filesystem::remove(path);
    ASSERT_TRUE(records.ok()) << records.error().message;
    EXPECT_EQ(*records, std::vector<Record>{plain_record()});
    const auto missing = read_records(path);
    ASSERT_FALSE(missing.ok());
    EXPECT_NE(missing.error().message.find(path), std::string::npos) << missing.error().message;
}

TEST(Record, SaysWhatWasMeasuredAndHowToDoItAgain) {
    const NullDevice device{**embedded_archs().find("cpu-generic")};
    const Problem problem = *parse_problem("gemm:m=8,n=8,k=8,dtype=fp32,layout=rcr");
    Kernel kernel = make_kernel(KernelConfig{});
    kernel.name = "it's@cpu-generic";
    Record record = record_of(problem, kernel, device, "digest");
    EXPECT_EQ(record.device, device.identity());
    EXPECT_EQ(record.problem, print_problem(problem));
    EXPECT_EQ(record.kernel_id, kernel.id);
    EXPECT_EQ(record.kernel_family, name_of(family_of(kernel.config)));
    EXPECT_EQ(record.code_digest, "digest");
    EXPECT_EQ(record.repro,
              "tilewise bench gemm:m=8,n=8,k=8,dtype=fp32,layout=rcr --kernel 'it'\\''s@cpu-generic' --device null "
              "--arch cpu-generic --threads " +
                  std::to_string(device.max_threads()));
    set_time(record, problem, device, 2.0);
    EXPECT_DOUBLE_EQ(record.tflops * 2e6, flops(problem));
    EXPECT_DOUBLE_EQ(record.gbps * 2e3, bytes_moved(problem));
}

}  // namespace
}  // namespace tilewise
