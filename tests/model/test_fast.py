"""Faster modules in the place of PyTorch's and RecBole's: the same figures, and a dropout that drops as it should."""

import copy

import pytest
import torch
from recbole.model.layers import TransformerEncoder
from torch import nn

from recbole_leaprec.model import fast
from recbole_leaprec.model.fast import FastDropout, FusedEncoder, speed_up


def make_encoder(activation: str, heads: int) -> TransformerEncoder:
    torch.manual_seed(1)
    encoder = TransformerEncoder(
        n_layers=2, n_heads=heads, hidden_size=12, inner_size=20, hidden_dropout_prob=0.3, attn_dropout_prob=0.3,
        hidden_act=activation, layer_norm_eps=1e-12,
    ).double()  # fmt: skip
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.4)
    return encoder


def causal_mask(length: int) -> torch.Tensor:
    return torch.full((1, 1, length, length), -10000.0, dtype=torch.float64).triu(1)


def padding_mask(length: int, rows: int = 3) -> torch.Tensor:
    hidden = torch.arange(length) >= torch.tensor([length, 4, 6]).repeat(rows)[:rows, None]
    return torch.where(hidden[:, None, None], -10000.0, 0.0).double()


@pytest.mark.parametrize("activation", ["gelu", "relu", "swish"])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("how", ["eval", "training, no attention dropout", "training"])
@pytest.mark.parametrize("mask", ["causal", "none", "padding"])
def test_the_fused_encoder_computes_what_recboles_does(activation, heads, how, mask):
    slow = make_encoder(activation, heads)
    for module in slow.modules():
        if isinstance(module, nn.Dropout):
            module.p = 1e-12 if how == "training" else 0.0  # drops nothing, and goes the way of one that does
    slow.train(how != "eval")
    quick = FusedEncoder(copy.deepcopy(slow)).train(how != "eval")
    x = torch.randn(3, 9, 12, dtype=torch.float64)
    one, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    given = padding_mask(9) if mask == "padding" else causal_mask(9)
    expected = slow(one, given.expand(3, 1, 9, 9), output_all_encoded_layers=True)
    got = quick(other, None if mask == "none" else given, output_all_encoded_layers=True)
    for layer, same in zip(got, expected, strict=True):
        torch.testing.assert_close(layer, same)
    weight = torch.randn(3, 9, 12, dtype=torch.float64)
    (expected[-1] * weight).sum().backward()
    (got[-1] * weight).sum().backward()
    torch.testing.assert_close(other.grad, one.grad)
    for (name, slow_one), fast_one in zip(slow.named_parameters(), quick.parameters(), strict=True):
        torch.testing.assert_close(fast_one.grad, slow_one.grad, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("mask", [None, padding_mask(9, rows=11)])
@pytest.mark.parametrize("rows_at_once", [4, 8])
def test_the_encoder_in_pieces_is_that_of_all_rows_at_once(monkeypatch, heads, mask, rows_at_once):
    whole = nn.ModuleList([make_encoder("gelu", heads)])
    speed_up(whole)
    parts = copy.deepcopy(whole)
    x = torch.randn(11, 9, 12, dtype=torch.float64)
    results = []
    for encoder, limit in ((whole, fast._IN_CACHE), (parts, rows_at_once * heads * 9 * 9)):
        monkeypatch.setattr(fast, "_IN_CACHE", limit)
        assert len(fast._pieces(x, heads)) == (1 if encoder is whole else -(-11 // rows_at_once))
        torch.manual_seed(4)
        inputs = x.clone().requires_grad_()
        first, last = encoder[0](inputs, mask)
        (last * x + first).sum().backward()
        after = torch.rand(1)  # the same seeds were drawn
        results.append([first, last, inputs.grad, after, *(parameter.grad for parameter in encoder.parameters())])
    for expected, got in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def test_an_encoder_in_pieces_keeps_what_it_is_given_and_hardly_more(monkeypatch):
    encoder = nn.ModuleList([make_encoder("gelu", 1)])
    speed_up(encoder)
    kept = {}
    for pieces, limit in ((False, fast._IN_CACHE), (True, 1)):
        monkeypatch.setattr(fast, "_IN_CACHE", limit)
        sizes: dict[int, int] = {}
        with torch.autograd.graph.saved_tensors_hooks(
            lambda one, sizes=sizes: sizes.update({one.data_ptr(): one.nbytes}) or one, lambda one: one
        ):
            x = torch.randn(64, 20, 12, dtype=torch.float64, requires_grad=True)
            encoder[0](x, None)
        kept[pieces] = sum(sizes.values())
    parameters = sum(one.nbytes for one in encoder.parameters())
    assert kept[True] <= x.nbytes + parameters
    assert kept[False] > 20 * x.nbytes


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_a_share_and_scales_it_up(p):
    torch.manual_seed(2)
    x = torch.rand(300, 1001, requires_grad=True)
    y = FastDropout(p)(x)
    kept = y != 0
    assert kept.double().mean().item() == pytest.approx(1 - p, abs=0.005)
    torch.testing.assert_close(y[kept], x[kept] / (1 - p))
    y.sum().backward()
    torch.testing.assert_close(x.grad, kept / (1 - p))
    # Neighbours, in either direction, are dropped independently.
    for one, other in ((kept[:, 1:], kept[:, :-1]), (kept[1:], kept[:-1])):
        assert (one & other).double().mean().item() == pytest.approx((1 - p) ** 2, abs=0.01)


def test_dropout_follows_the_seed_and_rests_in_evaluation():
    x = torch.ones(50, 7)
    drop = FastDropout(0.4)
    torch.manual_seed(3)
    first, second = drop(x), drop(x)
    torch.manual_seed(3)
    assert torch.equal(drop(x), first)
    assert not torch.equal(first, second)
    assert drop.eval()(x) is x
    assert torch.equal(FastDropout(0.0)(x), x)
    assert not FastDropout(1.0)(x).any()


def test_modules_are_replaced_wherever_they_are_and_parameters_keep_their_names():
    model = nn.ModuleDict({"encoder": make_encoder("gelu", 1), "drop": nn.Dropout(0.2)})
    names = list(model.state_dict())
    speed_up(model)
    assert list(model.state_dict()) == names
    assert isinstance(model["encoder"], FusedEncoder)
    dropouts = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    assert {type(module) for module in dropouts} == {FastDropout}
    assert sorted({module.p for module in dropouts}) == [0.2, 0.3]
