// SPDX-License-Identifier: MIT
#include "learn/model_store.hpp"

#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "learn/test_model.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArch = "cpu-avx2";
const char* const kFolder = "gemm_universal_fp32_cpu-avx2";

class ModelStoreTest : public testing::Test {
protected:
    void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
    void TearDown() override { fs::remove_all(root_); }

    static std::string trees() { return one_test(Op::gemm, "tile_m", 64, -0.2, 0.4); }
    static std::string card(const std::string& dtypes = R"(["fp32"])", const std::string& arch = kArch) {
        return card_text(Op::gemm, arch, {"blocked_gemm m4"}, 0, dtypes);
    }
    std::string folder(const std::string& name) const { return root_ + "/" + name; }
    static Problem problem(const std::string& dtype = "fp32") {
        return *parse_problem("gemm:m=64,n=64,k=64,layout=rcr,dtype=" + dtype);
    }
    static const FoundModel& look(ModelStore& store, const std::string& dtype = "fp32") {
        return store.find(problem(dtype), arch_named(kArch));
    }

    std::string root_ = (fs::temp_directory_path() / "tilewise-models-XXXXXX").string();
};

TEST_F(ModelStoreTest, TheFirstFolderWithAModelServes) {
    write_model(folder("first/" + std::string(kFolder)), card(), trees());
    write_model(folder("second/" + std::string(kFolder)), card(), trees());
    ModelStore store({folder("missing"), folder("first"), folder("second")});
    const FoundModel& found = look(store);
    ASSERT_TRUE(found.model.has_value());
    EXPECT_EQ(found.model->place(), folder("first/" + std::string(kFolder)));
    EXPECT_TRUE(found.notes.empty());
    EXPECT_EQ(&look(store), &found);  // read once
}

// The model of a type's class covers it; the type's own comes before.
TEST_F(ModelStoreTest, AModelServesTheTypesItCovers) {
    write_model(folder("m/gemm_universal_bf16_cpu-avx2"), card(R"(["bf16","fp16"])"), trees());
    ModelStore store({folder("m")});
    EXPECT_TRUE(look(store, "fp16").model.has_value());
    EXPECT_FALSE(look(store, "fp32").model.has_value());
    write_model(folder("n/gemm_universal_bf16_cpu-avx2"), card(R"(["bf16","fp16"])"), trees());
    write_model(folder("n/gemm_universal_fp16_cpu-avx2"), card(R"(["fp16"])"), trees());
    ModelStore both({folder("n")});
    ASSERT_TRUE(look(both, "fp16").model.has_value());
    EXPECT_EQ(look(both, "fp16").model->place(), folder("n/gemm_universal_fp16_cpu-avx2"));
}

// Its corrections are of the prices that it was trained with.
TEST_F(ModelStoreTest, AModelServesItsChip) {
    const auto of_chip = [](const std::string& chip) { return card().insert(1, fmt::format(R"("chip":"{}",)", chip)); };
    write_model(folder("own/" + std::string(kFolder)), of_chip(arch_named(kArch).chip), trees());
    write_model(folder("other/" + std::string(kFolder)), of_chip("zen5"), trees());
    ModelStore store({folder("other"), folder("own")});
    ASSERT_TRUE(look(store).model.has_value());
    EXPECT_EQ(look(store).model->place(), folder("own/" + std::string(kFolder)));
    EXPECT_TRUE(look(store).notes.empty());
    ModelStore named({folder("other/" + std::string(kFolder))});
    EXPECT_FALSE(look(named).model.has_value());
    ASSERT_EQ(look(named).notes.size(), 1U);
    EXPECT_NE(look(named).notes[0].message.find("it is for zen5; this is " + arch_named(kArch).chip), std::string::npos)
        << look(named).notes[0].message;
}

// A note with the reason; the next place is asked.
TEST_F(ModelStoreTest, ABrokenModelStopsNobody) {
    std::string other_features = card();
    const std::string& hash = feature_schema(Op::gemm).hash;
    other_features.replace(other_features.find(hash), hash.size(), "0123456789abcdef");
    const std::pair<std::string, std::string> kBroken[] = {{card(), "tree\n"},
                                                           {"{", trees()},
                                                           {other_features, trees()},
                                                           {card(), std::string(Forest::kMostBytes + 1, 'x')}};
    int number = 0;
    for (const auto& [text, trees_text] : kBroken) {
        const std::string broken = folder(fmt::format("broken{}", number++));
        write_model(broken + "/" + kFolder, text, trees_text);
        ModelStore alone({broken});
        const FoundModel& found = look(alone);
        EXPECT_FALSE(found.model.has_value());
        ASSERT_EQ(found.notes.size(), 1U) << number;
        EXPECT_EQ(found.notes[0].kind, "model");
        EXPECT_NE(found.notes[0].message.find(broken), std::string::npos) << found.notes[0].message;
        write_model(folder("whole/" + std::string(kFolder)), card(), trees());
        ModelStore store({broken, folder("whole")});
        EXPECT_TRUE(look(store).model.has_value());
        EXPECT_EQ(look(store).notes.size(), 1U);
        EXPECT_FALSE(store.add_folder(broken, arch_named(kArch)).ok());  // who names it is told at once
    }
}

TEST_F(ModelStoreTest, AModelOfAnotherArchIsNoted) {
    write_model(folder("one"), card(R"(["fp32"])", "cpu-avx512"), trees());
    ModelStore store({folder("one")});
    EXPECT_FALSE(look(store).model.has_value());
    ASSERT_EQ(look(store).notes.size(), 1U);
    EXPECT_NE(look(store).notes[0].message.find("it is for cpu-avx512; this is cpu-avx2"), std::string::npos)
        << look(store).notes[0].message;
    EXPECT_EQ(store.add_folder(folder("one"), arch_named(kArch)).error().code, ErrorCode::unsupported);
}

// Silence would let the user believe that the folder serves.
TEST_F(ModelStoreTest, AFolderThatTheEnvironmentNamesInVainIsNoted) {
    ASSERT_EQ(setenv("TILEWISE_MODEL_DIR", folder("nothing").c_str(), 1), 0);
    ModelStore store(ModelStore::usual_folders());
    const FoundModel& found = look(store);
    unsetenv("TILEWISE_MODEL_DIR");
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_NE(found.notes[0].message.find("TILEWISE_MODEL_DIR: '" + folder("nothing") + "' has no model"),
              std::string::npos)
        << found.notes[0].message;
}

TEST_F(ModelStoreTest, AListHasEveryModelAndWhatIsWrongWithIt) {
    write_model(folder("m/" + std::string(kFolder)), card(), trees());
    write_model(folder("m/z_broken"), card(), "tree\n");
    const auto listed = list_models({folder("m"), folder("missing")});
    ASSERT_GE(listed.size(), 2U);
    EXPECT_EQ(listed[0].place, folder("m/" + std::string(kFolder)));
    ASSERT_TRUE(listed[0].card.ok());
    EXPECT_EQ(listed[0].card->arch, kArch);
    ASSERT_FALSE(listed[1].card.ok());
    EXPECT_NE(listed[1].card.error().message.find("line 1"), std::string::npos) << listed[1].card.error().message;
    for (std::size_t i = 2; i < listed.size(); ++i) {
        EXPECT_TRUE(listed[i].place.starts_with("models/") && listed[i].card.ok()) << listed[i].place;
    }
}

TEST_F(ModelStoreTest, AFolderThatIsAddedComesFirst) {
    write_model(folder("old/" + std::string(kFolder)), card(), trees());
    write_model(folder("new/" + std::string(kFolder)), card(), trees());
    ModelStore store({folder("old")});
    ASSERT_TRUE(look(store).model.has_value());
    ASSERT_TRUE(store.add_folder(folder("new"), arch_named(kArch)).ok());
    EXPECT_EQ(look(store).model->place(), folder("new/" + std::string(kFolder)));
    const auto none = store.add_folder(folder("nothing"), arch_named(kArch));
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().message.find("has no model: need a folder with model.json"), std::string::npos)
        << none.error().message;
}

}  // namespace
}  // namespace tilewise
