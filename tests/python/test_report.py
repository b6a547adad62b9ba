# SPDX-License-Identifier: MIT
"""tilewise report: the page has all it needs, and shows the same figures in a browser as pandas finds."""
import html.parser
import json
import re
import shutil
import subprocess

import pytest

pd = pytest.importorskip("pandas")

from tilewise import records, report  # noqa: E402
from tilewise._verbs import main  # noqa: E402

PROBLEMS = ["gemm:m=512,n=512,k=512,dtype=bf16,layout=rcr", "gemm:m=64,n=4096,k=1024,dtype=fp16,layout=rrr",
            "conv_fwd:n=8,g=1,c=64,k=64,in=28x28,filter=3x3,stride=1x1,pad=1x1,dilation=1x1,dtype=bf16,layout=nhwgc"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def frame(write_records, tmp_path_factory):
    rows = [row for problem in PROBLEMS for row in write_records.swept(problem, network="</script><b>&")]
    rows[1] |= {"status": "crash", "reason": "an <illegal> access", "time_us": "", "repro": "tilewise bench 'x' --kernel y"}
    return records.read(write_records(tmp_path_factory.mktemp("records") / "r.csv", rows))


@pytest.fixture(scope="module")
def page(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(report.page(frame, "A <title>"), encoding="utf-8")
    return path


class Scripts(html.parser.HTMLParser):
    """The texts of the page's scripts, and all addresses that it names."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.addresses, self._inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self._inside = tag == "script"
        self.scripts += [""] if self._inside else []
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.scripts[-1] += data


def test_the_page_needs_nothing_else(page, frame):
    text = page.read_text(encoding="utf-8")
    found = Scripts(text)
    assert not found.addresses and "default-src 'none'" in text and "<title>A &lt;title&gt;</title>" in text
    assert not re.search(r"@[A-Z]+@", text) and "url(" not in text and "fetch(" not in text
    data = json.loads(found.scripts[0])
    assert len(found.scripts) == 2 and len(data["records"]["us"]) == len(frame) and data["problems"][0]["network"] == "</script><b>&"
    assert data["records"]["us"][1] is None or frame.is_valid[1]
    assert sorted(problem["text"] for problem in data["problems"]) == sorted(PROBLEMS)
    assert [i for i, _, _ in data["failures"]] == frame.index[~frame.is_valid].tolist()


def shown_by_browser(page, fragment=""):
    """The page's sections as text once its program has run; a browser that does not start here is none."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        pytest.skip("there is no headless browser")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent / 'profile'}",
                           "--virtual-time-budget=5000", "--dump-dom", f"file://{page}{fragment}"],
                          capture_output=True, text=True, timeout=120, check=False)
    assert "data-ready" in done.stdout, done.stderr[-2000:]
    body = done.stdout.partition('<script id="data"')[0]
    return {name: re.sub(r"<[^>]+>", " ", part) for name, part in re.findall(r'<section id="(\w+)">(.*?)</section>', body, flags=re.S)}


def test_a_browser_shows_the_figures(page, frame):
    shown = {name: " ".join(text.split()) for name, text in shown_by_browser(page).items()}
    assert f"3 problems {frame.kernel_name.nunique()} kernels {len(frame)} records" in shown["summary"]
    assert f"{100 * frame.is_valid.mean():.1f} % valid" in shown["summary"]
    best = frame[frame.is_best].groupby("problem").time_us.min()
    chosen = frame[frame.is_valid].sort_values("predicted_us").groupby("problem").time_us.first()
    assert f"{100 * (best / chosen).mean():.1f} % of the best, mean" in shown["regret"]
    apart = (frame.time2_us / frame.time_us - 1).abs()[frame.is_valid]
    assert f"{len(apart)} times taken twice: {100 * apart.median():.2f} % apart" in shown["noise"]
    assert "an &lt;illegal&gt; access tilewise bench 'x' --kernel y" in shown["failures"]
    for family, wins in frame[frame.is_best].groupby("kernel_family", observed=True).size().items():
        assert re.search(rf"{family} (\S+ ){{4}}{wins} ", shown["families"]), shown["families"]
    for name in frame[frame.is_best].kernel_name:
        assert name in shown["shapes"]


def test_filters_are_in_the_address(page, frame):
    shown = {name: " ".join(text.split()) for name, text in shown_by_browser(page, "#op=gemm&dtype=fp16").items()}
    mine = frame[frame.problem == PROBLEMS[1]]
    assert f"1 problems {mine.kernel_name.nunique()} kernels {len(mine)} records" in shown["summary"]
    assert PROBLEMS[1] in shown["shapes"] and PROBLEMS[0] not in shown["shapes"]


def test_the_narrow_form_is_predicted_anew(frame, tmp_path):
    narrow = tmp_path / "narrow.parquet"
    records.write_parquet(records.narrow(frame), narrow)
    assert main(["report", str(narrow), "--out", str(tmp_path / "page.html"), "--json"]) == 0
    data = json.loads(Scripts((tmp_path / "page.html").read_text(encoding="utf-8")).scripts[0])
    assert data["records"]["predicted"] == pytest.approx(frame.predicted_us.tolist(), rel=1e-4)


def test_what_cannot_be_written_is_said(capsys, tmp_path):
    assert main(["report", "x.csv", "--out", str(tmp_path / "nowhere" / "page.html")]) == 2
    assert "its folder does not exist" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "x.csv"), "--out", str(tmp_path / "page.html")]) == 2
    assert f"{tmp_path / 'x.csv'}: No such file" in capsys.readouterr().err
