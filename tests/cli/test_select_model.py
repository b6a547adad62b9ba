# SPDX-License-Identifier: MIT
"""tilewise select with a learned model: what it corrects, what it says, and what becomes of a broken one."""
import ctypes
import json
import math

import pytest

GEMM = "gemm:m=1024,n=1024,k=1024,dtype=fp8,layout=rcr"  # a type without a model of the library's own
ARCH = ("--arch", "sm_90a")
TREES = """tree
num_class=1
num_tree_per_iteration=1
max_feature_idx={last}
feature_names={names}

Tree=0
num_leaves=2
num_cat=0
split_feature={column}
threshold={threshold}
decision_type=2
left_child=-1
right_child=-2
leaf_value=-0.6 0.6

end of trees
"""


@pytest.fixture(scope="session")
def schema(root):
    library = ctypes.CDLL(str(root / "build" / "lib" / "libtilewise.so"))
    text = ctypes.c_void_p()
    assert library.tilewise_feature_schema(b"gemm", ctypes.byref(text)) == 0
    answer = json.loads(ctypes.string_at(text.value))
    library.tilewise_free(text)
    return answer


@pytest.fixture
def model(tmp_path, schema, ask):
    """model(...): a folder with a model that prefers tiles of at most `threshold` columns."""
    family = ask("select", GEMM, *ARCH)["plan"]["family"]

    def make(threshold=64, **changes):
        kinds = {f"{family} m64{more}": {"rows": 90, "error": 0.05} for more in ("", " swap", " split", " swap split", " stream")}
        card = {"format": 1, "op": "gemm", "arch": "sm_90a", "dtypes": ["fp8"], "features": {"hash": schema["hash"]},
                "target": "log_ratio", "ranges": {schema["names"][i]: [0, 12] for i in schema["ranged"]}, "kinds": kinds}
        (tmp_path / "model.json").write_text(json.dumps({**card, **changes}))
        (tmp_path / "model.txt").write_text(TREES.format(last=len(schema["names"]) - 1, names=" ".join(schema["names"]),
                                                         column=schema["names"].index("tile_n"), threshold=threshold))
        return str(tmp_path)

    return make


def test_the_corrected_times_decide(ask, run, model):
    rules = ask("select", GEMM, *ARCH)
    assert rules["plan"]["source"] == "rules" and "model" not in rules["plan"]
    folder = model()
    learned = ask("select", GEMM, *ARCH, "--model-dir", folder)
    said = learned["plan"]["model"]
    assert learned["plan"]["source"] == "model" and learned["plan"]["kernel"] == learned["candidates"][0]["name"]
    assert said["name"] == folder and said["weight"] == 1 and 0 <= said["confidence"] <= 1
    first = learned["candidates"][0]
    assert first["predicted_us"] == pytest.approx(first["analytic_us"] * math.exp(first["correction"]))
    assert len(learned["candidates"]) == len(rules["candidates"])
    told = run("select", GEMM, *ARCH, "--model-dir", folder, "--explain").out
    assert f"learned model  {folder}" in told and "no slower than the next" in told and "usual error" in told
    assert ask("select", GEMM, *ARCH, "--strategy", "rules", "--model-dir", folder)["plan"] == rules["plan"]


def test_the_environment_names_a_folder(run, model):
    folder = model()
    answer = run("select", GEMM, *ARCH, "--json", "--strategy", "model", env={"TILEWISE_MODEL_DIR": folder})
    assert answer.json["plan"]["source"] == "model"


def test_a_broken_model_is_a_note(ask, run, model):
    plan = ask("select", GEMM, *ARCH, "--model-dir", model(features={"hash": "0123456789abcdef"}))["plan"]
    assert plan["source"] == "rules"
    assert "have the feature hash '0123456789abcdef'; need '" in plan["notes"][0]["message"]
    refused = run("select", GEMM, *ARCH, "--strategy", "model", "--model-dir", model(format=7))
    assert refused.code == 3 and "no learned model for gemm in fp8 on sm_90a" in refused.err and "format" in refused.err
    assert run("select", GEMM, *ARCH, "--model-dir", "/nowhere").code == 2
