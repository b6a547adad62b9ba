# SPDX-License-Identifier: MIT
"""tilewise train --device and the checks that measure, with a command in the place of tilewise that has the records already."""
import json
import sys

import pytest

from tilewise import train
from tilewise._verbs import main
from tilewise.learning import measuring, own_machine

from .conftest import problems, row_of

COMMAND = """#!{python}
import csv, json, sys
given = [word for word in sys.argv[2:] if word not in ("--resume", "--json")]
words = dict(zip(given[::2], given[1::2]))
open("{log}", "a").write(json.dumps(sys.argv[1:]) + "\\n")
if words["--device"] == "cuda:7":
    print(json.dumps({{"error": {{"code": 5, "message": "there is no cuda:7"}}}}))
    sys.exit(5)
rows = list(csv.DictReader(open("{records}")))
if "--config" in words:
    wanted, names = open(words["--problems"]).read().split(), json.load(open(words["--config"]))
    rows = [row for row in rows if row["problem"] in wanted and row["kernel_name"] in names]
else:
    rows = [row for row in rows if row["set"].startswith(words["--problems"] + "@")]
with open(words["--out"], "w") as file:
    table = csv.DictWriter(file, rows[0])
    table.writeheader()
    table.writerows(rows)
"""


@pytest.fixture
def machine(rows, write_records, tmp_path, monkeypatch):
    """A device that has been measured: a command that knows the records, and its words."""
    unseen = [row for problem in problems(12, seed=6) for row in row_of(write_records, problem, "gemm_validation@fedcba9876543210")]
    program = tmp_path / "tilewise"
    program.write_text(COMMAND.format(python=sys.executable, log=tmp_path / "log", records=write_records(tmp_path / "all.csv", rows + unseen)))
    program.chmod(0o755)
    monkeypatch.setattr(measuring, "command", lambda: program)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return lambda: [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


def test_one_command_measures_learns_compares_and_installs(machine, tmp_path, capsys):
    words = ["train", "--device", "cuda:0", "--budget", "2m", "--op", "gemm_universal", "--n_splits", "3", "--trees", "40"]
    assert main(words) == 0
    told = capsys.readouterr().out
    training, validation = machine()
    assert training[:7] == ["sweep", "--problems", "gemm_training", "--device", "cuda:0", "--out", training[6]]
    assert training[training.index("--budget") + 1] == "90s" and validation[validation.index("--budget") + 1] == "30s"
    assert "gemm_validation" in validation and "--resume" in training and training[training.index("--kernels") + 1] == "sample"
    place = tmp_path / "data/tilewise/models/gemm_universal_bf16_sm_90a"
    assert f"installed as {place}" in told and "  old  mean" in told and "  new  mean" in told
    assert json.loads((place / "model.json").read_text())["op"] == "gemm" and (place / "model.txt").is_file()


def test_what_is_no_better_is_not_installed(machine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(own_machine, "is_better", lambda scores: False)
    assert main(["train", "--device", "cuda:0", "--op", "gemm", "--n_splits", "2", "--trees", "5", "--json"]) == 0
    made, = json.loads(capsys.readouterr().out)["models"]
    assert made["installed"] is None and set(made["scores"]) == {"old", "new"}
    assert not (tmp_path / "data/tilewise/models").exists()


def test_a_model_that_folds_find_no_better_is_not_judged(machine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train, "train_one", lambda *given: {"folder": None})
    assert main(["train", "--device", "cuda:0", "--op", "gemm", "--if_better", "--json"]) == 1
    made, = json.loads(capsys.readouterr().out)["models"]
    assert made == {"model": "gemm_universal_bf16_sm_90a", "scores": None, "installed": None}


def test_too_few_problems_make_no_model(machine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(own_machine, "LEAST_PROBLEMS", {"training": 20, "validation": 13})
    assert main(["train", "--device", "cuda:0", "--op", "gemm"]) == 1
    told = capsys.readouterr().out
    assert "gemm_universal_bf16_sm_90a is not made: 12 validation problems were measured; need at least 13" in told and "goes on" in told


def test_operations_that_there_is_no_time_for_are_left_out(machine, capsys):
    assert main(["train", "--device", "cuda:0", "--budget", "1m", "--n_splits", "2", "--trees", "5"]) in (0, 1)
    assert "60 s are enough for 1 of 4 operations: gemm. --op chooses another; --budget 240s is the least for all" in capsys.readouterr().out
    assert [words[2] for words in machine()] == ["gemm_training", "gemm_validation"]


def test_better_is_a_better_mean():
    assert own_machine.is_better({"old": {"mean": 97.0}, "new": {"mean": 97.1}}) and not own_machine.is_better({"old": {"mean": 97.0}, "new": {"mean": 97.0}})


def test_a_device_that_is_not_there_is_the_commands_error(machine, capsys):
    assert main(["train", "--device", "cuda:7", "--op", "gemm"]) == 5
    assert "sweep of gemm_training on cuda:7: there is no cuda:7" in capsys.readouterr().err
    assert main(["train", "--device", "cuda:0", "--budget", "0m"]) == 2
    assert "--budget 0m: need a time above 0" in capsys.readouterr().err
    assert main(["train", "--device", "cuda:0", "--dtype", "fp8"]) == 2
    assert "--dtype is for records" in capsys.readouterr().err


def test_training_shapes_are_measured_again(machine, data, tmp_path, capsys):
    models = tmp_path / "models"
    assert main(["train", "--data_dir", str(data), "--out_dir", str(models), "--n_splits", "3", "--trees", "40"]) == 0
    capsys.readouterr()
    words = ["validate", "training-shapes", "--data", str(data / "gemm.csv"), "--op", "gemm", "--model_dir", str(models / "gemm_universal_bf16_sm_90a")]
    code = main([*words, "--count", "4", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert len(told["shapes"]) == 4 == len(machine()) and code == (0 if all(one["met"] for one in told["targets"]) else 1)
    for shape in told["shapes"]:
        assert shape["best_us"] > 0 and 0 <= shape["efficiency"] <= 1 and shape["match"] == (shape["choice"] == shape["best"])
    assert main([*words, "--count", "200"]) == 2
    assert "--count 200: only " in capsys.readouterr().err
