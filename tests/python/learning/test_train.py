# SPDX-License-Identifier: MIT
"""tilewise train, predict and validate on 2,000 records: the learned choice is better than the analytic one, on shapes not learned from."""
import json
import subprocess
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pytest

import tilewise
from tilewise import records
from tilewise._verbs import main
from tilewise.learning.choice import examples_of
from tilewise.learning.features import FeatureEngine, kind_of
from tilewise.learning.table import table_from
from tilewise.predict import Predictor

from .conftest import problems, row_of

ROOT = Path(__file__).resolve().parents[3]
NAME = "gemm_universal_bf16_sm_90a"
QUICK = ["--n_splits", "3", "--trees", "40"]


@pytest.fixture(scope="module")
def models(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("models")
    assert main(["train", "--data_dir", str(data), "--out_dir", str(out), "--op", "gemm_universal", "--dtype", "bf16", "--arch", "sm_90a",
                 "--targets", "tflops", *QUICK]) == 0
    return out


@pytest.fixture(scope="module")
def unseen(write_records, tmp_path_factory):
    """Records of a test set, of every kernel that there is."""
    rows = [row for problem in problems(12, seed=6) for row in row_of(write_records, problem, "gemm_test@fedcba9876543210", kernels=1000)]
    return write_records(tmp_path_factory.mktemp("unseen") / "test.csv", rows)


# ---- train


def test_a_model_says_what_it_is_of(models, frame):
    folder = models / NAME
    facts = json.loads((folder / "model.json").read_text())
    engine = FeatureEngine("gemm", "sm_90a")
    assert facts["op"] == "gemm" and facts["arch"] == "sm_90a" and facts["dtypes"] == ["bf16", "fp16"] and facts["target"] == "log_ratio"
    assert facts["features"]["hash"] == engine.hash and set(facts["ranges"]) == set(engine.ranged)
    assert facts["rows"] == frame.is_valid.sum() and facts["shapes"] == frame.problem.nunique() and facts["set"] == "gemm_training@0123456789abcdef"
    assert all(kind["rows"] > 0 and 0 < kind["error"] < 1 for kind in facts["kinds"].values())
    scores = facts["scores"]
    assert scores["mean"] > scores["analytic"]["mean"] and {"median", "p10", "p1", "min", "match", "top8", "accuracy", "pool"} < set(scores)
    booster = lightgbm.Booster(model_file=folder / "model.txt")
    assert booster.feature_name() == engine.names and booster.num_trees() <= 40
    assert (folder / "model.txt").stat().st_size < 2**20


def test_the_same_records_give_the_same_bits(models, data, tmp_path):
    assert main(["train", "--data_dir", str(data), "--out_dir", str(tmp_path), *QUICK]) == 0
    for name in ("model.txt", "model.json"):
        assert (tmp_path / NAME / name).read_bytes() == (models / NAME / name).read_bytes()


def test_objectives_are_compared_on_the_same_folds(data, tmp_path, capsys):
    assert main(["train", "--data_dir", str(data), "--out_dir", str(tmp_path), "--objective", "compare", "--json", *QUICK]) == 0
    made, = json.loads(capsys.readouterr().out)["models"]
    table = made["scores"]["objectives"]
    assert set(table) == {"analytic", "residual", "mixed", "rank", "log_time", "log_tflops"}
    assert made["scores"]["mean"] == max(table[name]["mean"] for name in ("residual", "mixed", "rank"))


def test_a_model_that_is_no_better_may_be_left_out(rows, write_records, tmp_path, capsys):
    exact = [row | {"status": "ok", "time_us": row["predicted_us"], "time2_us": row["predicted_us"]} for row in rows]
    (tmp_path / "data").mkdir()
    write_records(tmp_path / "data/x.csv", exact)
    assert main(["train", "--data_dir", str(tmp_path / "data"), "--out", str(tmp_path / "models"), "--if_better", *QUICK]) == 0
    assert "not written: it chooses no better than the analytic model" in capsys.readouterr().out and not (tmp_path / "models").exists()


def test_a_search_keeps_what_is_better_and_its_parameters_begin_the_next(data, models, tmp_path, capsys):
    words = ["train", "--data_dir", str(data), "--out_dir", str(tmp_path), "--json", "--n_splits", "2", "--trees", "8"]
    assert main([*words, "--search", "0.5s"]) == 0
    made, = json.loads(capsys.readouterr().out)["models"]
    assert main([*words, "--parameters", str(tmp_path)]) == 0
    again, = json.loads(capsys.readouterr().out)["models"]
    assert again["parameters"] == made["parameters"] and again["scores"]["mean"] == made["scores"]["mean"]


def test_it_goes_on_from_a_model(models, data, tmp_path):
    words = ["train", "--data_dir", str(data), "--out_dir", str(tmp_path), "--warm_start", str(models / NAME), *QUICK]
    assert main(words) == 0
    before, after = (lightgbm.Booster(model_file=folder / NAME / "model.txt").num_trees() for folder in (models, tmp_path))
    assert before < after


def test_studies_leave_out_networks_and_kinds(data, tmp_path, frame, capsys):
    assert main(["train", "--data_dir", str(data), "--out_dir", str(tmp_path), "--studies", "--json", *QUICK]) == 0
    made, = json.loads(capsys.readouterr().out)["models"]
    assert set(made["without_network"]) == {"net-a", "net-b"} and all(50 < mean <= 100 for mean in made["without_network"].values())
    rows = frame.kernel_family.value_counts()
    assert set(made["without_kind"]) == {kind for kind in rows.index if rows[kind] >= 210} and all(50 < mean <= 100 for mean in made["without_kind"].values())


def test_what_judges_is_not_learned_from(data, unseen, tmp_path, capsys):
    (tmp_path / "all.csv").write_text((data / "gemm.csv").read_text() + unseen.read_text().partition("\n")[2])
    assert main(["train", "--data_dir", str(tmp_path), "--out_dir", str(tmp_path / "models"), "--json", *QUICK]) == 0
    made, = json.loads(capsys.readouterr().out)["models"]
    assert made["shapes"] == records.read(data / "gemm.csv").problem.nunique()


def test_what_it_is_asked_for_has_to_be_there(data, tmp_path, capsys):
    for words, told in ((["--op", "gem"], "unknown operation 'gem'; need one of gemm, "), (["--n_splits", "1"], "--n_splits 1: need at least 2"),
                        (["--trees", "0"], "--trees 0: need at least 1"), (["--threads", "-3"], "--threads -3: need at least 1"),
                        (["--parameters", "/nowhere"], "--parameters /nowhere: there is no such folder"),
                        (["--out_dir", str(data / "gemm.csv" / "models")], "gemm.csv is no folder"),
                        (["--op", "conv_fwd", "--dtype", "bf16", "--arch", "sm_90a"], "no records with op conv_fwd"),
                        (["--search", "soon"], "--search soon: need a time above 0"), (["--search", "9" * 400], "need a time above 0"),
                        (["--warm_start", "/nowhere"], "--warm_start /nowhere: '/nowhere/model.json' is no file")):
        assert main(["train", "--data_dir", str(data), "--out_dir", str(tmp_path), *words]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize("changes, told", [
    ({"time_us": "nan"}, "column time_us is 'nan'; need a number"), ({"time_us": ""}, "column time_us is nan where the status is ok"), ({"time_us": "1e999"}, "column time_us is inf; need a number from 0"),
    ({"status": "crash", "time_us": ""}, "no record has a time (40 crash); nothing can be learned from failures alone"),
    ({"problem": problems()[0]}, "1 shapes in 1 groups of neighbours, too few for 5 folds; measure more shapes"),
    ({"problem": "gemm:m=8"}, "problem 'gemm:m=8': ")])
def test_records_that_nothing_can_be_learned_from_are_refused(rows, write_records, tmp_path, capsys, changes, told):
    write_records(tmp_path / "x.csv", [row | changes for row in rows if row["status"] == "ok"][:40])
    assert main(["train", "--data_dir", str(tmp_path), "--out_dir", str(tmp_path / "models")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "models").exists()


def test_a_missing_column_is_named(data, tmp_path, capsys):
    (tmp_path / "x.csv").write_text((data / "gemm.csv").read_text().replace(",time_us,", ",time,", 1))
    assert main(["train", "--data_dir", str(tmp_path), "--out_dir", "x"]) == 2
    assert "it has no column time_us" in capsys.readouterr().err


def test_an_empty_folder_says_what_is_missing(tmp_path, capsys):
    assert main(["train", "--data_dir", str(tmp_path), "--out_dir", "x"]) == 2
    assert "there are no records, neither *.parquet nor *.csv; tilewise sweep" in capsys.readouterr().err
    (tmp_path / "x.csv").write_text("schema,set,device,problem,kernel_name,status,time_us\n2,gemm_test@0,d,p,k,ok,1\n")
    assert main(["train", "--data_dir", str(tmp_path), "--out_dir", "x"]) == 2
    assert "all 1 records are of validation and test sets" in capsys.readouterr().err


def test_without_lightgbm_training_alone_is_refused(monkeypatch, data, models, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert main(["train", "--data_dir", str(data), "--out_dir", str(tmp_path)]) == 4
    assert "needs lightgbm, which is not installed; pip install 'tilewise[train]' has it" in capsys.readouterr().err
    assert main(["predict", problems()[0], "--arch", "sm_90a", "--model-dir", str(models)]) == 0


# ---- predict


def test_a_predictor_ranks_as_lightgbm_does(models, frame):
    table = table_from(frame)
    examples = examples_of(table)
    booster = lightgbm.Booster(model_file=models / NAME / "model.txt")
    predictor = Predictor(models / NAME)
    kinds = predictor.facts["kinds"]
    for index in range(0, len(table.problems), 20):
        rows = list(table.rows())[index]
        names = list(map(str, table.kernels[rows]))
        us = examples.analytic_us[rows] * np.exp(booster.predict(examples.features[rows]))
        known = [kinds.get(kind_of(name), {"rows": 0})["rows"] >= 8 for name in names]
        us = np.where(known, us, examples.analytic_us[rows] * np.exp(predictor.facts["mean"]))
        assert predictor.predict_us(table.problems[index], names) == pytest.approx(us, rel=1e-5)
        ranked = predictor.rank_kernels(table.problems[index], names)
        assert [name for name, _ in ranked] == [names[i] for i in np.argsort(us, kind="stable")]
        assert predictor.select_best(table.problems[index].fields, names) == ranked[0][0]
        flops = table.problems[index].flops
        assert predictor.predict_tflops(table.problems[index], names[0]) == pytest.approx(flops / us[0] / 1e6, rel=1e-5)
        assert predictor.predict_latency(table.problems[index], names[0]) == pytest.approx(us[0] / 1e3, rel=1e-5)


def test_the_problem_that_is_asked_for_counts_not_that_of_the_pool(models, frame):
    predictor = Predictor(models / NAME)
    first, last = problems()[0], problems()[-1]
    pool = frame[frame.problem == tilewise.Problem(first).text].to_dict("records")
    names = [row["kernel_name"] for row in pool]
    assert predictor.rank_kernels(last, pool) == predictor.rank_kernels(last, names) != predictor.rank_kernels(first, pool)


@pytest.mark.parametrize("spoil, told", [
    (lambda folder: (folder / "model.json").unlink(), "no folder of a model: it has no model.json"),
    (lambda folder: (folder / "model.json").write_text("{"), "model.json"),
    (lambda folder: (folder / "model.json").write_text("[]"), "model.json"),
    (lambda folder: (folder / "model.txt").write_text((folder / "model.txt").read_text()[:2000]), "model.txt"),
    (lambda folder: (folder / "model.txt").write_text("a model of something else\n"), "model.txt"),
    (lambda folder: (folder / "model.json").write_text((folder / "model.json").read_text().replace(FeatureEngine("gemm").hash, "0" * 16)), "0" * 16),
])
def test_a_model_that_is_broken_or_foreign_is_refused(models, tmp_path, spoil, told):
    folder = tmp_path / NAME
    folder.mkdir()
    for name in ("model.txt", "model.json"):
        (folder / name).write_bytes((models / NAME / name).read_bytes())
    spoil(folder)
    with pytest.raises(tilewise.TilewiseError, match=told):
        Predictor(folder).select_best(problems()[0], [one.name for one in tilewise.select(problems()[0], arch="sm_90a").candidates])


def test_a_predictor_is_of_one_operation(models):
    with pytest.raises(tilewise.UsageError, match="a problem of conv_fwd; these are features of gemm"):
        Predictor(models / NAME).select_best("conv_fwd:n=1,g=1,c=8,k=8,in=8x8,filter=1x1,dtype=bf16", ["x"])
    with pytest.raises(tilewise.UsageError, match="the features are those of conv_fwd"):
        Predictor(models / NAME, FeatureEngine("conv_fwd", "sm_90a"))
    with pytest.raises(tilewise.UsageError, match="a kernel without a name"):
        Predictor(models / NAME).rank_kernels(problems()[0], [{"tile": "64x64x32"}])


def test_predict_shows_the_first(models, capsys):
    assert main(["predict", problems()[0], "--arch", "sm_90a", "--model-dir", str(models), "--top", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["kernels"]) == 3 and told["kernels"][0]["us"] <= told["kernels"][2]["us"] and told["plan"]["model"]["name"] == str(models / NAME)


# ---- validate


def validated(unseen, models, tmp_path, *words):
    return main(["validate", "heuristic", "--data", str(unseen), "--set", "test", "--dtype", "bf16", "--model_dir",
                 str(models / NAME), "--scores", str(tmp_path / "test_scores.jsonl"), *words])


def test_validation_scores_a_test_set_and_writes_it_down(unseen, data, models, tmp_path, capsys):
    code = validated(unseen, models, tmp_path, "--json", "--known", str(data / "gemm.csv"))
    told = json.loads(capsys.readouterr().out)
    assert code == (0 if all(one["met"] for one in told["targets"]) else 1)
    assert told["scores"]["mean"] > told["baselines"]["analytic"]["mean"] and set(told["baselines"]) == {"analytic", "first fit", "best single kernel", "nearest shape"}
    assert sum(row["problems"] for row in told["parts"]["size"].values()) == told["scores"]["problems"] == 12
    line, = map(json.loads, (tmp_path / "test_scores.jsonl").read_text().splitlines())
    assert line["sets"] == ["gemm_test@fedcba9876543210"] and len(line["model"]) == 16 and line["scores"]["mean"] == told["scores"]["mean"] and "commit" in line
    validated(unseen, models, tmp_path)
    assert "by network: problems, mean, P10, analytic mean" in capsys.readouterr().out
    assert len((tmp_path / "test_scores.jsonl").read_text().splitlines()) == 2


def test_the_models_own_data_is_warned_of(data, models, tmp_path, capsys):
    main(["validate", "heuristic", "--data", str(data / "gemm.csv"), "--set", "training", "--dtype", "bf16", "--model_dir",
          str(models / NAME), "--scores", str(tmp_path / "s.jsonl")])
    assert "these records are the model's own training data (gemm_training@0123456789abcdef)" in capsys.readouterr().err
    assert not (tmp_path / "s.jsonl").exists()


@pytest.mark.parametrize("words, told", [(["--layout", "ccc"], "no records of layout ccc; there are rcr, rrr"), (["--op", "grouped_conv"], "has 3 directions; name one"),
                                         (["--set", "validation"], "no records of validation sets; these are of gemm_test@"), (["--dtype", "fp8"], "no records with dtype fp8")])
def test_what_cannot_be_judged_is_said(unseen, models, tmp_path, capsys, words, told):
    assert validated(unseen, models, tmp_path, *words) == 2
    assert told in capsys.readouterr().err


def test_the_originals_modules_have_its_names(models):
    program = """
from feature_engine import FeatureEngine, GemmUniversalFeatureEngine
from feature_engine_grouped_conv import GroupedConvFeatureEngine
from predict import Predictor
gemm = GemmUniversalFeatureEngine("sm_90a")
conv = GroupedConvFeatureEngine("bwd_data", "sm_90a")
assert conv.op == "conv_bwd_data" and isinstance(gemm, FeatureEngine) and gemm.get_feature_names() != conv.get_feature_names()
problem, names = PROBLEM, NAMES
assert gemm.extract_batch(problem, names).shape == (len(names), len(gemm.get_feature_names()))
assert (gemm.extract(problem, {"kernel_name": names[0], "m": 1}) == gemm.extract_batch(problem, names)[0]).all()
assert set(gemm.get_categorical_features()) < set(gemm.get_feature_names())
print(Predictor(MODEL, gemm).select_best(problem, names))
"""
    names = [one.name for one in tilewise.select(problems()[0], arch="sm_90a").candidates[:3]]
    for word, value in (("PROBLEM", tilewise.Problem(problems()[0]).fields), ("NAMES", names), ("MODEL", str(models / NAME))):
        program = program.replace(word, repr(value))
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "heuristics", capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() in names, done


def test_under_the_names_of_the_original(unseen, models, data, tmp_path):
    scripts = [["train.py", "--data_dir", data, "--out_dir", tmp_path, "--op", "gemm_universal", "--dtype", "bf16", "--arch", "sm_90a", "--trees", "5",
                "--n_splits", "2"],
               ["predict.py", problems()[0], "--arch", "sm_90a", "--model-dir", models]]
    for script, *words in scripts:
        done = subprocess.run([sys.executable, ROOT / "heuristics" / script, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
    for script in ("validate_ml_heuristic.py", "grouped_conv/validate_training_shapes.py", "grouped_conv/validate_backward_models.py"):
        done = subprocess.run([sys.executable, ROOT / "heuristics/validation" / script, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "--model_dir" in done.stdout, done
