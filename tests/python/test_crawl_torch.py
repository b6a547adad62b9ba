# SPDX-License-Identifier: MIT
"""tilewise.crawl on files of torch.export: layers, layouts, symbols and what is listed as not mapped."""
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  only where torch is installed

from tilewise._verbs import main  # noqa: E402
from tilewise.crawl import crawl  # noqa: E402


class Net(nn.Module):
    """Convolutions, one of them transposed, a linear layer that is used twice, and products of a batch."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.back = nn.ConvTranspose2d(8, 4, 3, 2, 1, output_padding=1, groups=2)
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        x = self.back(self.first(x).relu())
        x = self.linear(self.linear(x).relu())
        return x @ x.transpose(-1, -2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    def save(model, x, **options):
        path = tmp_path_factory.mktemp("model") / "net.pt2"
        torch.export.save(torch.export.export(model.eval(), (x,), **options), path)
        return str(path)
    return save


def test_every_layer_is_found_with_its_count(saved):
    path = saved(Net(), torch.zeros(2, 3, 12, 16))
    conv = "dilation=1x1,dtype=fp32"
    crawled = crawl(path)
    assert crawled.counts == {
        f"conv_fwd:n=2,g=1,c=3,k=8,in=12x16,filter=3x3,stride=2x2,pad=1x1,{conv},layout=ngchw": 1,
        f"conv_bwd_data:n=2,g=2,c=4,k=8,in=12x16,filter=3x3,stride=2x2,pad=1x1,{conv},layout=ngchw,epilogue=bias": 1,
        "gemm:m=96,n=16,k=16,dtype=fp32,layout=rcr,epilogue=bias": 2,
        "gemm:m=12,n=12,k=16,dtype=fp32,layout=rcr,batch=8": 1,
    }
    assert not crawled.unmapped
    assert sum(crawl(path, backward=True).counts.values()) == 3 * 5


def test_channels_last_is_a_layout(saved):
    model = nn.Conv2d(4, 8, 3).to(memory_format=torch.channels_last)
    path = saved(model, torch.zeros(2, 4, 8, 8).to(memory_format=torch.channels_last))
    assert [text.split("layout=")[1] for text in crawl(path).counts] == ["nhwgc,epilogue=bias"]


def test_symbols_take_the_sizes_that_are_given(saved, capsys):
    path = saved(nn.Linear(8, 4), torch.zeros(6, 8), dynamic_shapes=({0: torch.export.Dim("batch")},))
    unknown = crawl(path)
    assert not unknown.counts and len(unknown.unmapped) == 1
    symbol = unknown.unmapped[0].reason.partition("--set ")[2].removesuffix("=N")
    assert list(crawl(path, sizes={symbol: 40}).counts) == ["gemm:m=40,n=4,k=8,dtype=fp32,layout=rcr,epilogue=bias"]
    assert main(["crawl", path, "--set", "tokens=4"]) == 2
    assert f"--set tokens: the model has no such symbol; it has {symbol}" in capsys.readouterr().err


@torch.library.custom_op("crawl_test::secret", mutates_args=())
def secret(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@secret.register_fake
def _(x):
    return torch.empty_like(x)


class Mixed(nn.Module):
    """Attention, an operation of somebody else, branches, and a type that the library has not."""

    def forward(self, x):
        x = nn.functional.scaled_dot_product_attention(x, x, x)
        x = torch.cond(secret(x).sum() > 0, lambda y: y @ y.transpose(-1, -2), lambda y: (y @ y.transpose(-1, -2)) * 2, (x,))
        return x.double() @ x.double()


def test_what_cannot_be_mapped_is_listed(saved):
    crawled = crawl(saved(Mixed(), torch.zeros(2, 4, 8, 16)))
    assert crawled.counts == {"gemm:m=8,n=8,k=16,dtype=fp32,layout=rcr,batch=8": 1,
                              "gemm:m=8,n=16,k=8,dtype=fp32,layout=rrr,batch=8": 1}  # attention, taken apart by torch
    assert [(one.operation, one.reason) for one in crawled.unmapped] == [
        ("secret", "an operation of crawl_test"), ("cond", "its body is not looked into"), ("bmm", "it is of type float64")]
