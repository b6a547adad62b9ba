# SPDX-License-Identifier: MIT
"""Folders of models are there whole or not at all, and looks at test sets are written down."""
import json
import pathlib

import pytest

import tilewise
from tilewise.learning import ledger, model_folder


def test_a_model_takes_the_place_of_an_older_one(tmp_path):
    folder = tmp_path / "models" / "m"
    for text in ("first", "second"):
        model_folder.write(folder, text, {"op": "gemm"})
        assert (folder / "model.txt").read_text() == text and model_folder.read_facts(folder) == {"format": 1, "op": "gemm"}
    assert [path.name for path in folder.parent.iterdir()] == ["m"]
    assert model_folder.trees_hash(folder) != model_folder.trees_hash_of("first") == model_folder.trees_hash_of("first")


def test_one_that_is_too_large_leaves_the_older_one(tmp_path):
    model_folder.write(tmp_path / "m", "small", {"op": "gemm"})
    with pytest.raises(tilewise.UsageError, match=f"a model of {2**20 + 1} bytes; at most {2**20} are read"):
        model_folder.write(tmp_path / "m", "x" * (2**20 + 1), {"op": "gemm"})
    assert (tmp_path / "m/model.txt").read_text() == "small"


def test_it_is_installed_where_the_library_looks(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    model_folder.write(tmp_path / "m", "trees", {"op": "gemm"})
    assert model_folder.install(tmp_path / "m") == tmp_path / "data/tilewise/models/m"
    assert (tmp_path / "data/tilewise/models/m/model.txt").read_text() == "trees"


def test_a_relative_path_is_no_place_as_for_the_library(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert model_folder.user_folder() == tmp_path / ".local/share/tilewise/models"
    monkeypatch.setenv("HOME", "")
    with pytest.raises(tilewise.UsageError, match="neither XDG_DATA_HOME nor HOME is an absolute path"):
        model_folder.user_folder()


def test_a_failed_rename_leaves_the_older_one(tmp_path, monkeypatch):
    model_folder.write(tmp_path / "m", "first", {"op": "gemm"})
    rename = pathlib.Path.rename

    def fails(self, target):
        if (self / "model.txt").is_file() and (self / "model.txt").read_text() == "second":
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(pathlib.Path, "rename", fails)
    with pytest.raises(OSError, match="no"):
        model_folder.write(tmp_path / "m", "second", {"op": "gemm"})
    assert (tmp_path / "m/model.txt").read_text() == "first" and [path.name for path in tmp_path.iterdir()] == ["m"]


def test_each_look_at_a_test_set_is_a_line(tmp_path):
    path = tmp_path / "new" / "test_scores.jsonl"
    for mean in (97.0, 98.0):
        ledger.add(path, ["gemm_test@1"], "abc", {"mean": mean, "parts": {}}, op="gemm")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["scores"] for line in lines] == [{"mean": 97.0}, {"mean": 98.0}] and lines[0]["model"] == "abc" and lines[0]["op"] == "gemm"
    assert len(lines[0]["commit"]) in (0, 12)  # none where the sources are no checkout
