# SPDX-License-Identifier: MIT
"""The models of the sources: for the features that the library has today, and learned from training sets alone."""
import json
import subprocess
from pathlib import Path

import pytest

import tilewise
from tilewise.learning.features import FeatureEngine
from tilewise.learning.model_folder import trees_hash
from tilewise.learning.table import use_of
from tilewise.learning.training import folder_name

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = sorted(path.parent for path in ROOT.glob("models/*/model.json"))
PROBLEMS = {"gemm": "gemm:m=512,n=512,k=512,layout=rcr", "conv_fwd": "conv_fwd:n=8,g=1,c=64,k=64,in=28x28,filter=3x3,pad=1x1"}


def arch_file(tmp_path, arch, chip):
    """The arch as a machine with this chip has it."""
    facts = tilewise._library.call("tilewise_archs", arch)["archs"][0]
    (tmp_path / "arch.json").write_text(json.dumps({**facts, "chip": chip or facts["chip"]}))
    return str(tmp_path / "arch.json")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_it_is_for_these_features_and_better_than_the_analytic_model(folder, tmp_path):
    facts = json.loads((folder / "model.json").read_text())
    assert folder.name == folder_name(facts["op"], facts["dtypes"][0], facts["arch"])
    assert facts["features"]["hash"] == FeatureEngine(facts["op"]).hash, "make models trains it for the features of today"
    assert facts["scores"]["mean"] > facts["scores"]["analytic"]["mean"]
    assert all(use_of(name) == "training" for name in facts["set"].split(", "))
    problem = f"{PROBLEMS[facts['op']]},dtype={facts['dtypes'][0]}"
    answer = subprocess.run([ROOT / "build/bin/tilewise", "select", problem, "--arch", facts["arch"], "--strategy", "model", "--json",
                             "--threads", "1", "--arch-file", arch_file(tmp_path, facts["arch"], facts.get("chip"))],
                            capture_output=True, text=True, check=True)
    chosen = json.loads(answer.stdout)
    assert chosen["plan"]["source"] == "model" and chosen["candidates"][0]["analytic_us"] > 0


def test_each_look_at_a_test_set_is_of_a_known_model():
    """One line for each model; more have to be explained here."""
    lines = [json.loads(line) for line in (ROOT / "data/test_scores.jsonl").read_text().splitlines()]
    looks = [(line["model"], line["op"], line["dtype"], line["rule_set"]) for line in lines]
    assert len(looks) == len(set(looks)) and {trees_hash(folder) for folder in FOLDERS} <= {line["model"] for line in lines}
