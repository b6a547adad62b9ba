// SPDX-License-Identifier: MIT
// For tests against the tables in tests/golden/cuda: they are read here, and a test is skipped while one is not there yet.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>

#include "kernels/golden_table.hpp"

namespace tilewise {

class GoldenTest : public testing::Test {
protected:
    static constexpr std::string_view kFolder = TILEWISE_SOURCE_DIR "/tests/golden/cuda";

    // Whether the tables are there; if not, missing_ says which is not. One that cannot be read is a failure.
    bool have(std::initializer_list<const char*> names) {
        for (const char* name : names) {
            if (!std::filesystem::exists(golden_file(kFolder, name))) {
                missing_ = golden_file(kFolder, name) + " is not there; tests/gpu/probe_test.cpp writes it on a GPU";
                return false;
            }
            auto table = read_golden(kFolder, name);
            EXPECT_TRUE(table.ok()) << table.error().message;
            if (!table.ok()) return false;
            tables_[name] = std::move(*table);
        }
        return true;
    }
    const GoldenTable& table(const std::string& name) const { return tables_.at(name); }

    // f(row, column, value) for every place.
    template <class F>
    void each(const std::string& name, F&& f) const {
        const auto& rows = table(name).rows;
        ASSERT_FALSE(rows.empty());
        for (std::size_t row = 0; row < rows.size(); ++row) {
            for (std::size_t column = 0; column < rows[row].size(); ++column) {
                SCOPED_TRACE(fmt::format("{}: row {}, column {}", name, row, column));
                f(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column), rows[row][column]);
                if (testing::Test::HasFailure()) return;  // one place says enough
            }
        }
    }

    std::string missing_;

private:
    std::map<std::string, GoldenTable> tables_;
};

}  // namespace tilewise
