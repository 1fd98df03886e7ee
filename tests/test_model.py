"""The CD mixin on SASRec, against a loss put together by hand from RecBole's own forward."""

import pytest
import torch
from recbole.model.sequential_recommender import SASRec
from recbole.utils import init_seed

from recbole_leaprec.data import HISTORY_END
from recbole_leaprec.model import get_model, known_models
from recbole_leaprec.model.cd_mixin import PREFERENCE
from tests import reference

WEIGHTS = [(0.1, 1.0), (0.0, 1.0), (0.5, 0.0), (2.0, 0.3)]


@pytest.fixture
def make_batch(prepare):
    def make(**changes):
        init_seed(3, True)
        config, dataset, (train, _, _) = prepare(**changes)
        model = config.model_class(config, dataset).eval()  # no dropout
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        batch = next(iter(train))
        batch[PREFERENCE] = dataset.preference_table(config["alpha"])[batch[HISTORY_END]]
        return config, dataset, model, batch

    return make


def loss_by_hand(config, dataset, model, batch):
    """Eq. 8 to 10, one target at a time: RecBole's SASRec on the window up to it, scores by dot product, KL as defined."""
    distributions = dataset.categories.distribution.tolist()
    terms = []
    dense = batch["item_id"].dim() == 2
    for row in range(len(batch["user_id"])):
        places = range(int(batch["item_length"][row])) if dense else [int(batch["item_length"][row]) - 1]
        for place in places:
            at = (row, place) if dense else (row,)
            positive, negative = batch["item_id"][at], batch["neg_item_id"][at]
            if positive == 0:
                continue
            inputs = batch["item_id_list"][row : row + 1, : place + 1]
            output = SASRec.forward(model, inputs, torch.tensor([place + 1]))[0]
            margin = output @ model.item_embedding.weight[positive] - output @ model.item_embedding.weight[negative]
            p = batch[PREFERENCE][at].tolist()
            kl = [reference.kl(p, distributions[int(item)], config["beta"]) for item in (positive, negative)]
            bpr = -torch.nn.functional.logsigmoid(margin)
            cd_bpr = -torch.nn.functional.logsigmoid(margin - kl[0] + kl[1])
            terms.append(config["bpr_weight"] * bpr + config["gamma"] * cd_bpr)
    return torch.stack(terms).mean()


@pytest.mark.parametrize(("gamma", "bpr_weight"), WEIGHTS)
@pytest.mark.parametrize("positions", ["all", "last"])
def test_loss_and_gradient_are_those_made_by_hand(make_batch, gamma, bpr_weight, positions):
    config, dataset, model, batch = make_batch(gamma=gamma, bpr_weight=bpr_weight, train_positions=positions)
    loss, expected = model.calculate_loss(batch), loss_by_hand(config, dataset, model, batch)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    parameters = dict(model.named_parameters())
    got = torch.autograd.grad(loss, list(parameters.values()))
    want = torch.autograd.grad(expected, list(parameters.values()))
    for name, one, other in zip(parameters, got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


def test_gradient_reaches_every_parameter(make_batch):
    _, _, model, batch = make_batch()
    model.calculate_loss(batch).backward()
    # A constant added to every key drops out of the softmax.
    without = [name for name, p in model.named_parameters() if not p.grad.abs().max() > 1e-7 and "key.bias" not in name]
    assert without == []


def test_without_the_cd_term_the_loss_needs_no_preference(make_batch):
    _, _, model, batch = make_batch(gamma=0.0)
    del batch.interaction[PREFERENCE]
    assert model.calculate_loss(batch).isfinite()


def test_padding_and_batch_mates_do_not_change_a_score(make_batch):
    _, _, model, batch = make_batch()
    whole = model.full_sort_predict(batch)
    for row in range(len(batch["user_id"])):
        length = int(batch["item_length"][row])
        alone = {"item_id_list": batch["item_id_list"][row : row + 1, :length], "item_length": torch.tensor([length])}
        torch.testing.assert_close(model.full_sort_predict(alone)[0], whole[row], rtol=1e-4, atol=1e-5)


def test_models_are_found_by_name_and_recboles_own_are_among_them():
    assert get_model("SASRec") is SASRec
    assert issubclass(get_model("SASRecCD"), SASRec)
    assert {"GRU4Rec", "Caser", "BERT4Rec"} <= set(known_models())


@pytest.mark.parametrize(("name", "near"), [("SASRecCd", "SASRecCD"), ("SASReCCD", "SASRecCD"), ("GRU4rec", "GRU4Rec")])
def test_unknown_models_are_refused_with_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"unknown model '{name}'; did you mean '{near}'"):
        get_model(name)


def test_anomaly_detection_that_recbole_switches_on_is_off():
    assert not torch.is_anomaly_enabled()
