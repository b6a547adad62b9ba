// SPDX-License-Identifier: MIT
#include "learn/model_store.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "base/embedded.hpp"
#include "base/files.hpp"
#include "base/fork_safe_mutex.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCardFile = "model.json", kTreesFile = "model.txt";

constexpr const char* kModelDir = "TILEWISE_MODEL_DIR";

std::string variable(const char* name) {
    const char* value = secure_getenv(name);
    return value ? value : "";
}

// As folders of models are called: operations in the original's words.
std::string folder_name(Op op, DType dtype, const std::string& arch) {
    constexpr std::string_view kWords[] = {"gemm_universal", "grouped_conv_forward", "grouped_conv_bwd_data",
                                           "grouped_conv_bwd_weight"};
    return fmt::format("{}_{}_{}", kWords[static_cast<std::size_t>(op)], name_of(dtype), arch);
}

// A file of a model, which may come from anywhere.
Result<std::string> read_part(const std::string& folder, std::string_view name) {
    const fs::path path = fs::path(folder) / name;
    std::error_code error;
    if (!fs::is_regular_file(path, error))
        return usage_error(fmt::format("'{}' is no file; a model has one", path.string()));
    const auto bytes = fs::file_size(path, error);
    if (!error && bytes > Forest::kMostBytes) {
        return usage_error(fmt::format("'{}' has {} bytes; need at most {}", path.string(), bytes, Forest::kMostBytes));
    }
    return read_file(path.string());
}

Result<ModelCard> read_card(const std::string& folder) {
    const auto text = read_part(folder, kCardFile);
    if (!text) return text.error();
    return ModelCard::parse(*text, (fs::path(folder) / kCardFile).string());
}

Result<Model> read_trees(ModelCard card, const std::string& folder) {
    const auto trees = read_part(folder, kTreesFile);
    if (!trees) return trees.error();
    return Model::make(std::move(card), *trees, folder);
}

// A folder of a model, or the folders of models in it, by name.
std::vector<std::string> model_folders(const std::string& folder) {
    std::error_code error;
    if (fs::exists(fs::path(folder) / kCardFile, error)) return {folder};
    std::vector<std::string> found;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        std::error_code ignored;
        if (fs::exists(at->path() / kCardFile, ignored)) found.push_back(at->path().string());
    }
    std::ranges::sort(found);
    return found;
}

// A model and where its trees are.
struct Offer {
    std::string place;
    Result<ModelCard> card;
    std::string_view trees{};  // of the library's own
};

std::vector<Offer> offers_of(const std::string& folder) {
    std::vector<Offer> offers;
    for (const std::string& place : model_folders(folder)) offers.push_back({place, read_card(place)});
    return offers;
}

std::vector<Offer> own_offers() {
    std::vector<Offer> offers;
    for (const EmbeddedFile& file : embedded_files()) {
        const std::size_t slash = file.path.rfind('/');
        if (!file.path.starts_with("models/") || file.path.substr(slash + 1) != kCardFile) continue;
        const std::string place(file.path.substr(0, slash));
        const auto is_trees = [&](const EmbeddedFile& other) {
            return other.path == fmt::format("{}/{}", place, kTreesFile);
        };
        const auto trees = std::ranges::find_if(embedded_files(), is_trees);
        if (trees == embedded_files().end()) continue;
        offers.push_back({place, ModelCard::parse(file.text, std::string(file.path)), trees->text});
    }
    return offers;
}

Result<Model> read_offer(Offer& offer) {
    if (!offer.card) return offer.card.error();
    return offer.trees.empty() ? read_trees(std::move(*offer.card), offer.place)
                               : Model::make(std::move(*offer.card), offer.trees, offer.place);
}

Note refused_note(const std::string& place, const Error& error) {
    return {"model", error.code, fmt::format("the learned model '{}' is not used: {}", place, error.message)};
}

// The best of the offers: trained on the problem's own type, or on one of its class. What is broken is told where it would have served.
std::optional<Model> choose_offer(std::vector<Offer>& offers, const Problem& problem, const ArchSpec& arch,
                                  std::vector<Note>& notes) {
    const std::string wanted = folder_name(problem.op, problem.dtype_a, arch.name);
    const auto is_named = [&](const Offer& offer) { return fs::path(offer.place).filename() == wanted; };
    std::stable_partition(offers.begin(), offers.end(), is_named);
    for (Offer& offer : offers) {
        if (!offer.card) {
            if (is_named(offer) || offers.size() == 1) notes.push_back(refused_note(offer.place, offer.card.error()));
            continue;
        }
        if (!offer.card->covers(problem, arch)) continue;
        auto model = read_offer(offer);
        if (model) return std::move(*model);
        notes.push_back(refused_note(offer.place, model.error()));
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::string> ModelStore::usual_folders() {
    std::vector<std::string> folders;
    if (const std::string named = variable(kModelDir); !named.empty()) folders.push_back(named);
    // The XDG specification: a path that is not absolute is to be ignored.
    if (const std::string data = variable("XDG_DATA_HOME"); data.starts_with('/')) {
        folders.push_back(data + "/tilewise/models");
    } else if (const std::string home = variable("HOME"); home.starts_with('/')) {
        folders.push_back(home + "/.local/share/tilewise/models");
    }
    return folders;
}

std::vector<ListedModel> list_models(const std::vector<std::string>& folders) {
    std::vector<ListedModel> listed;
    const auto add = [&](std::vector<Offer> offers) {
        for (Offer& offer : offers) {
            const auto model = read_offer(offer);
            listed.push_back({offer.place, model ? Result<ModelCard>(model->card()) : model.error()});
        }
    };
    for (const std::string& folder : folders) add(offers_of(folder));
    add(own_offers());
    return listed;
}

Status check_model_folder(const std::string& folder) {
    if (!model_folders(folder).empty()) return {};
    return usage_error(fmt::format("'{}' has no model: need a folder with {} and {}, or a folder of such folders",
                                   folder, kCardFile, kTreesFile));
}

Result<Model> read_model(const std::string& folder) {
    auto card = read_card(folder);
    if (!card) return card.error();
    return read_trees(std::move(*card), folder);
}

Status ModelStore::add_folder(const std::string& folder, const ArchSpec& arch) {
    if (auto status = check_model_folder(folder); !status) return status;
    const std::vector<std::string> models = model_folders(folder);
    bool serves = false;
    for (const std::string& place : models) {
        const auto model = read_model(place);
        if (!model) return model.error();
        serves = serves || model->card().arch == arch.name;
        if (models.size() == 1 && !serves) {
            return unsupported_error(
                fmt::format("the model '{}' is for {}; this device is {}", place, model->card().arch, arch.name));
        }
    }
    if (!serves)
        return unsupported_error(
            fmt::format("none of the {} models in '{}' is for {}", models.size(), folder, arch.name));
    const std::scoped_lock lock(fork_safe_mutex());
    folders_.insert(folders_.begin(), folder);
    ++generation_;
    return {};
}

const FoundModel& ModelStore::find(const Problem& problem, const ArchSpec& arch) {
    const std::uint32_t generation = generation_;
    if (const FoundModel* found = found_.find(ModelKeyView{problem.op, problem.dtype_a, arch.name, generation}))
        return *found;
    FoundModel looked = look(problem, arch);
    const std::scoped_lock lock(fork_safe_mutex());
    return found_.add({problem.op, problem.dtype_a, arch.name, generation}, std::move(looked));
}

FoundModel ModelStore::look(const Problem& problem, const ArchSpec& arch) {
    std::vector<std::string> folders;
    {
        const std::scoped_lock lock(fork_safe_mutex());
        folders = folders_;
    }
    FoundModel found;
    for (const std::string& folder : folders) {
        std::vector<Offer> offers = offers_of(folder);
        const bool is_one_model = offers.size() == 1 && offers.front().place == folder;
        if (is_one_model && offers.front().card) {
            const ModelCard& card = *offers.front().card;
            const bool is_other_chip = card.arch == arch.name && !card.chip.empty() && card.chip != arch.chip;
            if (card.arch != arch.name || is_other_chip) {
                found.notes.push_back(refused_note(
                    folder,
                    unsupported_error(fmt::format("it is for {}; this is {}", is_other_chip ? card.chip : card.arch,
                                                  is_other_chip ? arch.chip : arch.name))));
            }
        }
        // The user's data folder may be missing; one that the environment names is there for a reason.
        if (offers.empty() && folder == variable(kModelDir)) {
            found.notes.push_back({"model", ErrorCode::usage,
                                   fmt::format("{}: {}", kModelDir, check_model_folder(folder).error().message)});
        }
        found.model = choose_offer(offers, problem, arch, found.notes);
        if (found.model) return found;
    }
    std::vector<Offer> own = own_offers();
    found.model = choose_offer(own, problem, arch, found.notes);
    return found;
}

}  // namespace tilewise
