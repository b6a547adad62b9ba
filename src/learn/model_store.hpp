// SPDX-License-Identifier: MIT
// Where learned models are found: in folders that a caller or the environment names, in the user's data folder, and in the library
// itself. A model is read when a problem first asks for one. One that cannot be used becomes a note, and the next place is asked.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/growing_table.hpp"
#include "base/note.hpp"
#include "base/result.hpp"
#include "learn/model.hpp"

namespace tilewise {

// Why there is no model, or why it is not the one that a place offers.
struct FoundModel {
    std::optional<Model> model{};
    std::vector<Note> notes{};
};

class ModelStore {
public:
    // Folders in the order in which they are asked; the library's own models come after them.
    explicit ModelStore(std::vector<std::string> folders) : folders_(std::move(folders)) {}

    // Those of the environment: TILEWISE_MODEL_DIR, and the user's data folder.
    static std::vector<std::string> usual_folders();

    // Asks a folder before all others from now on. It must have models, all of them readable and for this arch.
    Status add_folder(const std::string& folder, const ArchSpec& arch);

    // For the problem's operation and types. Stays for as long as the store lives.
    const FoundModel& find(const Problem& problem, const ArchSpec& arch);

private:
    struct ModelKey {
        Op op;
        DType dtype;
        std::string arch;
        std::uint32_t generation;
        bool operator==(const ModelKey&) const = default;
    };
    struct ModelKeyView {
        Op op;
        DType dtype;
        const std::string& arch;
        std::uint32_t generation;
        friend bool operator==(const ModelKey& a, const ModelKeyView& b) {
            return a.op == b.op && a.dtype == b.dtype && a.generation == b.generation && a.arch == b.arch;
        }
    };
    struct KeyHash {
        template <class K>
        std::size_t operator()(const K& key) const {
            return static_cast<std::size_t>(key.op) * 31 + static_cast<std::size_t>(key.dtype) * 7 +
                   key.generation * 97;
        }
    };

    FoundModel look(const Problem& problem, const ArchSpec& arch);

    std::vector<std::string> folders_;  // under fork_safe_mutex once others may ask
    std::atomic<std::uint32_t> generation_{0};
    GrowingTable<ModelKey, FoundModel, KeyHash> found_;
};

// Every model of the folders, then of the library itself, in the order in which they are asked; or why one cannot be used.
struct ListedModel {
    std::string place;
    Result<ModelCard> card;
};
std::vector<ListedModel> list_models(const std::vector<std::string>& folders);

// Refuses a folder that is neither a model's nor has folders of models in it.
Status check_model_folder(const std::string& folder);
// The model of one folder.
Result<Model> read_model(const std::string& folder);

}  // namespace tilewise
