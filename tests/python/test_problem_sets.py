# SPDX-License-Identifier: MIT
"""tilewise.problem_sets: the committed sets are what the generators give, hold what they promise, and keep apart."""
import collections
import pathlib

import numpy as np
import pytest

import tilewise
from tilewise import problem_sets
from tilewise._draw import Draw
from tilewise.problem_sets import SETS, Entry, NearShapes, are_near, dimensions

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "problems"
MOST_FILE_BYTES = 1_500_000  # all of them; the command carries them

FAMILIES = {
    ("gemm", "training"): "llama-3 deepseek-v3 bert-large gpt-3 t5 swin-b random thin off-by-one one-column short-k odd "
                          "thin-long middle-rows",
    ("gemm", "validation"): "gpt-neox-20b gemma-2-27b mlp-mixer",
    ("gemm", "test"): "falcon-40b bloom phi-2 conformer-l wide-and-deep",
    ("conv", "training"): "resnet-18 resnet-50 vgg-16 resnext-50 mobilenet-v2 convnext-t yolo unet-3d shufflenet-v2 alexnet "
                          "audio-1d random thin off-by-one few-in few-out uneven-channels strided-depthwise deep-small "
                          "long-filter dilated",
    ("conv", "validation"): "wide-resnet-50 mnasnet hrnet-w32 conv-tasnet c3d",
    ("conv", "test"): "repvgg mobilenet-v3 ghostnet resnest-50 edsr wave-unet slowfast",
}


def kind_of(a_set):
    return "gemm" if a_set.key == "gemm" else "conv"


def read(name):
    """The entries of a committed file, read as `--problems` does."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    halves = [line.partition("#") for line in lines if not line.startswith("#")]
    return [Entry(problem.strip(), family.strip()) for problem, _, family in halves]


@pytest.fixture(scope="module")
def entries():
    return {name: read(name) for name in SETS}


@pytest.fixture(scope="module")
def problems(entries):
    return {name: [tilewise.Problem(entry.problem) for entry in entries[name]] for name in SETS}


def test_the_committed_text_is_what_the_generators_give():
    assert sorted(path.name for path in FOLDER.glob("*.txt")) == sorted(f"{name}.txt" for name in SETS)
    for name, generated in problem_sets.generate_all().items():
        assert (FOLDER / f"{name}.txt").read_text(encoding="utf-8") == problem_sets.set_text(name, generated), \
            f"{name} differs; python -m tilewise.problem_sets problems writes it anew"
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < MOST_FILE_BYTES


def test_sizes(entries):
    sizes = {name: len(entries[name]) for name in SETS}
    for key, count in {"gemm": 2400, "forward": 1800, "bwd_data": 1000, "bwd_weight": 1550}.items():
        assert [sizes[f"{key}_{use}"] for use in ("training", "validation", "test")] == [count, 300, 300]
        assert [sizes[f"cpu_{key}_{use}"] for use in ("training", "validation", "test")] == [300, 60, 60]


def test_every_line_is_the_one_spelling_of_a_problem_of_its_set(entries, problems):
    for name, a_set in SETS.items():
        assert [problem.text for problem in problems[name]] == [entry.problem for entry in entries[name]]
        assert {problem.op for problem in problems[name]} == {a_set.op}
        assert {problem.dtype for problem in problems[name]} == {"fp32" if name.startswith("cpu_") else "bf16"}
        assert len({problem.text for problem in problems[name]}) == a_set.size
        assert max(problem.flops for problem in problems[name]) <= (2e9 if name.startswith("cpu_") else 1e12)


def test_families_are_those_that_are_promised_and_disjoint(entries):
    for name, a_set in SETS.items():
        assert {entry.family for entry in entries[name]} == set(FAMILIES[kind_of(a_set), a_set.use].split()), name
    for kind in ("gemm", "conv"):
        uses = [set(FAMILIES[kind, use].split()) for use in problem_sets.USES]
        assert not uses[0] & uses[1] and not uses[0] & uses[2] and not uses[1] & uses[2]


def test_no_unseen_shape_is_near_one_of_training(problems):
    """Every pair is compared, without the cells that the generators search."""
    compared = 0
    for kind in ("gemm", "conv"):
        shapes = {seen: collections.defaultdict(list) for seen in (True, False)}
        for name, a_set in SETS.items():
            for problem in problems[name] if kind_of(a_set) == kind else ():
                shape = dimensions(problem.fields)
                shapes[a_set.use == "training"][len(shape)].append(shape)
        for rank, unseen in shapes[False].items():
            training = np.array(shapes[True][rank])
            for shape in np.array(unseen):
                near = (4 * np.maximum(training, shape) <= 5 * np.minimum(training, shape)).all(axis=1)
                assert not near.any(), f"{shape} is near {training[near][0]}"
                compared += len(training)
    assert compared > 5_000_000


def test_dimensions_have_every_extent():
    conv = tilewise.Problem("conv_fwd:n=2,g=3,c=6,k=9,in=20x30,filter=4x5,stride=7x8,dilation=10x11,pad=40,dtype=bf16")
    assert sorted(dimensions(conv.fields)) == sorted((2, 3, 6, 9, 20, 30, 4, 5, 7, 8, 10, 11))
    assert dimensions(tilewise.Problem("conv_fwd:n=2,c=6,k=9,in=20,filter=4,dtype=bf16").fields) == (2, 6, 9, 1, 20, 4, 1, 1)
    assert sorted(dimensions(tilewise.Problem("gemm:m=2,n=3,k=4,batch=5,dtype=bf16").fields)) == [2, 3, 4, 5]


def test_near_is_at_most_a_quarter_more_in_every_dimension():
    assert are_near((4, 100), (5, 80)) and are_near((7,), (7,))
    assert not are_near((4, 100), (5, 79)) and not are_near((1, 1), (1, 2)) and not are_near((4,), (4, 4))


def test_near_shapes_are_found_in_any_cell():
    draw = Draw(1)
    shapes = [tuple(draw.log_between(1, 300) for _ in range(3)) for _ in range(600)]
    known, found = NearShapes(), 0
    for shape in shapes[:300]:
        known.add(shape)
    for shape in shapes[300:]:
        expected = any(are_near(shape, other) for other in shapes[:300])
        assert (shape in known) == expected
        found += expected
    assert 20 < found < 280


@pytest.mark.parametrize("name", [name for name, a_set in SETS.items() if a_set.use == "training"])
def test_training_has_every_class_in_its_share(name, entries, problems):
    a_set = SETS[name]
    families = collections.Counter(entry.family for entry in entries[name])
    assert families["thin"] == (families["thin"] + families["random"]) // 3
    epilogues = collections.Counter(problem.fields.get("epilogue") for problem in problems[name])
    if a_set.key == "bwd_weight":  # a bias would have no channels to be added to
        assert set(epilogues) == {None}
    else:
        assert set(epilogues) == {None, "bias", "bias+gelu"} and a_set.size - epilogues[None] == a_set.size // 10
    layouts = {problem.layout for problem in problems[name]}
    if a_set.key == "gemm":
        assert layouts == {a + b + c for a in "rc" for b in "rc" for c in "rc"}
        assert all(min(problem.m, problem.n) <= 8 for problem, entry in zip(problems[name], entries[name])
                   if entry.family == "thin")
    else:
        assert layouts >= {"nwgc", "nhwgc", "ndhwgc", "ngcw", "ngchw"}
        assert all(min(problem.c, problem.k) <= 8 for problem, entry in zip(problems[name], entries[name])
                   if entry.family == "thin")
    if not name.startswith("cpu_"):  # of those there are too few to have each
        assert a_set.key == "gemm" or "ngcdhw" in layouts
        assert {problem.fields.get("align", 16) for problem in problems[name]} == {1, 2, 4, 8, 16}
        batches = [problem.fields.get("batch", 1) if a_set.key == "gemm" else problem.n for problem in problems[name]]
        assert min(batches) == 1 and 200 < max(batches) <= 256


def test_the_header_says_what_the_file_holds(entries):
    for name, a_set in SETS.items():
        head = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()[:3]
        assert head[1].startswith(f"# {name}: {a_set.size} problems, seed {a_set.seed}, "
                                  f"hash {problem_sets.problems_hash(entries[name])};")
        assert head[2] == "# families: " + ", ".join(sorted({entry.family for entry in entries[name]}))


def test_draws_are_logarithmic_and_stay_between_their_ends():
    draw = Draw(7)
    sizes = [draw.log_between(3, 1000) for _ in range(4000)]
    assert min(sizes) == 3 and max(sizes) > 900
    assert 0.4 < sum(size < 55 for size in sizes) / len(sizes) < 0.6
    assert all(draw.log_between(10, 100, 8) in range(16, 97, 8) for _ in range(100))


def test_main_writes_into_a_folder_that_is_there(tmp_path, capsys):
    assert problem_sets.main([]) == 2 and problem_sets.main([str(tmp_path / "nowhere")]) == 2
    assert "usage" in capsys.readouterr().err
