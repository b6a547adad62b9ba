# SPDX-License-Identifier: MIT
"""tilewise.records and tilewise convert: merging, what is added and left out, and both forms of Parquet."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

pd = pytest.importorskip("pandas")

import tilewise  # noqa: E402
from tilewise import records  # noqa: E402
from tilewise._verbs import main  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
GEMM = "gemm:m=512,n=512,k=512,dtype=bf16,layout=rcr"
CONV = "conv_fwd:n=8,g=1,c=64,k=64,in=28x28,filter=3x3,stride=1x1,pad=1x1,dilation=1x1,dtype=bf16,layout=nhwgc"


@pytest.fixture(scope="module")
def rows(write_records):
    return write_records.swept(GEMM) + write_records.swept(CONV)


@pytest.fixture
def path(rows, write_records, tmp_path):
    return write_records(tmp_path / "records.csv", rows)


def test_columns_say_what_problem_and_kernel_are(path):
    frame = records.read(path)
    gemm, conv = frame[frame.problem == GEMM], frame[frame.problem == CONV]
    assert (gemm.problem_m == 512).all() and (conv.problem_in == "28x28").all() and (conv.problem_gemm_k == 576).all()
    for row in frame.itertuples():
        config = tilewise.KernelConfig(row.kernel_name)
        assert row.kernel_tile == config.values["tile"] and row.kernel_id == config.id and row.kernel_family
    assert frame.tflops[0] == pytest.approx(tilewise.Problem(frame.problem[0]).flops / frame.time_us[0] / 1e6)


def test_the_best_is_the_least_time_that_counts(rows, write_records, tmp_path):
    rows = [dict(row) for row in rows]
    first = next(row for row in rows if row["problem"] == GEMM)
    first |= {"status": "wrong", "time_us": 1e-3}
    frame = records.read(write_records(tmp_path / "r.csv", rows))
    assert not frame[frame.kernel_name == first["kernel_name"]].is_valid.any()
    for _, group in frame.groupby("problem"):
        assert group[group.is_best].time_us.tolist() == [group[group.is_valid].time_us.min()]


def test_of_the_same_measurement_the_newest_counts(rows, write_records, tmp_path):
    again = [row | {"started": "2026-11-19T00:00:00Z", "time_us": 5.0, "status": "ok"} for row in rows[:1]]
    new, old = write_records(tmp_path / "new.csv", again), write_records(tmp_path / "old.csv", rows)
    for order in ((new, old), (old, new)):
        frame = records.read(*order)
        assert len(frame) == len(rows) and frame[frame.kernel_name == rows[0]["kernel_name"]].time_us.tolist() == [5.0]


def test_a_torn_last_line_is_no_record(path, rows):
    whole = path.read_bytes()
    for torn in (b'2,gemm_test,"Fal', b'2,gemm_test,"a compiler,\nwhich said\n'):
        path.write_bytes(whole + torn)
        assert len(records.read(path)) == len(rows)


@pytest.mark.parametrize("column, other, told", [("device", "AMD MI300X", "records of 2 devices: "), ("schema", "3", "records of 2 schemas: ")])
def test_records_that_do_not_belong_together_are_refused(path, rows, write_records, tmp_path, column, other, told):
    second = write_records(tmp_path / "other.csv", [row | {column: other} for row in rows])
    with pytest.raises(tilewise.UsageError) as error:
        records.read(path, second)
    assert str(error.value).startswith(told) and f"{other} in {second}" in str(error.value) and "--mix" in str(error.value)
    assert len(records.read(path, second, mix=True)) == len(rows) * (2 if column == "device" else 1)


@pytest.mark.parametrize("text, told", [
    ("", "no table of records"), ("a,b\n1,2\n", "no column schema, device, problem"),
    ("schema,device,problem,kernel_name,status,time_us\n2,d,p,k,ok,fast\n", "record 1: column time_us is 'fast'; need a number"),
    ("schema,device,problem,kernel_name,status,time_us\n2,d,p,k,ok,inf\n", "record 1: column time_us is inf; need a number from 0"),
    ("schema,device,problem,kernel_name,status,time_us\n2,d,p,k,ok,-1\n", "record 1: column time_us is -1"),
    ("schema,device,problem,kernel_name,status,time_us\n", "there are no records"),
    ("schema,device,problem,kernel_name,status,time_us\n2,d,gemm:m=x,k,ok,1\n", "problem 'gemm:m=x': .*not a whole number"),
])
def test_a_file_of_something_else_is_refused(tmp_path, text, told):
    path = tmp_path / "records.csv"
    path.write_text(text)
    with pytest.raises(tilewise.UsageError, match=told):
        records.read(path)


@pytest.mark.parametrize("suffix, told", [("csv", "byte 4 is no part of a text in UTF-8"), ("parquet", "no Parquet file")])
def test_a_file_that_is_no_text_is_refused(tmp_path, capsys, suffix, told):
    (tmp_path / f"records.{suffix}").write_bytes(b"PAR1\xff\xfe\x00PAR1")
    assert main(["convert", str(tmp_path / f"records.{suffix}"), "--out", str(tmp_path / "out.parquet")]) == 2
    assert told in capsys.readouterr().err
    assert main(["convert", str(tmp_path / f"none.{suffix}"), "--out", str(tmp_path / "out.parquet")]) == 2
    assert f"none.{suffix}: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("columns, told", [({"repro": ["x"], "a": [1]}, "no column schema, device, problem"),
                                           ({"problem": [1]}, "problem has something else than texts"),
                                           ({"time_us": ["1"]}, "time_us has something else than numbers")])
def test_a_parquet_file_of_something_else_is_refused(tmp_path, columns, told):
    record = {"schema": ["2"], "device": ["d"], "problem": ["p"], "kernel_name": ["k"], "status": ["ok"], "time_us": [1.0]}
    pd.DataFrame(columns if "repro" in columns else record | columns).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(tilewise.UsageError, match=told):
        records.read(tmp_path / "x.parquet")


@pytest.mark.parametrize("narrow", [[], ["--narrow"]])
def test_parquet_gives_what_csv_gave(path, tmp_path, capsys, narrow):
    out = tmp_path / "records.parquet"
    assert main(["convert", str(path), "--out", str(out), "--arch", "sm_90a", "--json", *narrow]) == 0
    facts = json.loads(capsys.readouterr().out)
    before, after = records.read(path), records.read(out)
    assert facts["records"] == len(before) == len(after) and facts["problems"] == 2 and facts["archs"] == ["sm_90a"]
    for name in before.columns:
        if name == "predicted_us" and narrow:
            assert records.predicted(after).to_numpy() == pytest.approx(before[name].to_numpy(), rel=1e-5)
        elif name in (*records.ROUNDED, *records.NUMBERS):
            assert after[name].astype(float).to_numpy() == pytest.approx(before[name].astype(float).to_numpy(), rel=0.06, nan_ok=True)
        else:
            assert after[name].astype(str).tolist() == before[name].astype(str).tolist(), name
    told = records.metadata(out)
    assert told["devices"] == ["NVIDIA H200; sm_90a; 570"] and told["drivers"] == ["570"] and told["sets"] == {"gemm_test": "0123456789abcdef"}


def test_the_narrow_form_is_small(rows, write_records, tmp_path):
    """Some 20 bytes a record, as many as there may be."""
    many = [row | {"problem": f"gemm:m={m},n=512,k=512,dtype=bf16,layout=rcr", "time_us": row["time_us"] or 3.0}
            for m in range(64, 8064, 8) for row in rows[:6]]
    frame = records.read(write_records(tmp_path / "many.csv", many))
    records.write_parquet(records.narrow(frame), tmp_path / "many.parquet")
    assert (tmp_path / "many.parquet").stat().st_size < 20 * len(many)


def test_shards_become_one_table_that_every_command_reads(rows, write_records, tmp_path, capsys):
    shards = [str(write_records(tmp_path / f"{i}.csv", rows[i::2])) for i in range(2)]
    assert main(["convert", *shards, "--out", str(tmp_path / "all.csv")]) == 0
    assert f"{len(rows)} records of {len(rows)} read" in capsys.readouterr().out
    again = records.read_file(tmp_path / "all.csv")
    assert len(again) == len(rows) and set(again.columns) == set(rows[0])


@pytest.mark.parametrize("words, told", [
    (["--out", "x.txt"], "ends in .parquet or .csv"), (["--out", "/nowhere/x.csv"], "its folder does not exist"),
    (["--out", "x.csv", "--narrow"], "--narrow is a form of Parquet"), (["--out", "x.csv", "--arch", "gfx942"], "the records are of sm_90a")])
def test_what_cannot_be_written_is_said(path, capsys, monkeypatch, tmp_path, words, told):
    monkeypatch.chdir(tmp_path)
    assert main(["convert", str(path), *words]) == 2
    assert told in capsys.readouterr().err


def test_what_was_skipped_may_be_left_out(rows, write_records, tmp_path, capsys):
    given = [row | {"status": "skipped", "time_us": "", "reason": "budget"} if place % 2 else row for place, row in enumerate(rows)]
    path, out = write_records(tmp_path / "r.csv", given), tmp_path / "x.parquet"
    assert main(["convert", str(path), "--out", str(out), "--narrow", "--measured"]) == 0
    assert (records.read(out).status != "skipped").all() and len(records.read(out)) == sum(row["status"] != "skipped" for row in given)
    write_records(path, [row | {"status": "skipped"} for row in rows])
    capsys.readouterr()
    assert main(["convert", str(path), "--out", str(out), "--measured"]) == 2
    assert "all records were skipped; tilewise sweep --resume measures them" in capsys.readouterr().err


def test_under_the_name_of_the_original(path, tmp_path):
    script = ROOT / "heuristics" / "convert_csv_to_parquet.py"
    done = subprocess.run([sys.executable, script, "--input", path, path, "--output", tmp_path / "x.parquet", "--arch", "sm_90a"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert len(records.read(tmp_path / "x.parquet")) == len(records.read(path))
