"""The models' losses, against losses put together by hand from RecBole's own forward; and models by name."""

import math

import pytest
import torch
from recbole.model.sequential_recommender import BERT4Rec, Caser, GRU4Rec, SASRec
from recbole.utils import init_seed
from torch.nn.functional import logsigmoid

from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import HISTORY_END, create_dataset, data_preparation
from recbole_leaprec.model import UNSUPPORTED, get_model, known_models
from recbole_leaprec.model.cd_mixin import PREFERENCE
from recbole_leaprec.quick_start import run_leaprec
from recbole_leaprec.trainer import LeapRecTrainer
from tests import reference

WEIGHTS = [(0.1, 1.0), (0.0, 1.0), (0.5, 0.0), (2.0, 0.3)]
OWN = ["SASRecCD", "GRU4RecCD", "CaserCD", "BERT4RecCD", "DACSR"]
OTHERS = sorted(set(known_models()) - set(OWN))
NEEDED = {name: {"reranker_CAN_NUM": "20"} for name in ("SASRecCPR", "GRU4RecCPR")}  # the toy catalogue is below 100


@pytest.fixture
def make_batch(prepare):
    def make(model="SASRecCD", **changes):
        init_seed(3, True)
        config, dataset, (train, _, _) = prepare(model, **changes)
        model = config.model_class(config, train.dataset).eval()  # no dropout
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        batch = next(iter(train))
        alpha = 1.0 if config["model"] == "DACSR" else config["alpha"]
        batch[PREFERENCE] = dataset.preference_table(alpha)[batch[HISTORY_END]]
        return config, dataset, model, batch

    return make


def last_output(model, batch, row, place):
    """RecBole's forward of SASRec or GRU4Rec on the items up to a place, alone."""
    inputs = batch["item_id_list"][row : row + 1, : place + 1]
    return (SASRec if isinstance(model, SASRec) else GRU4Rec).forward(model, inputs, torch.tensor([place + 1]))[0]


def window_output(model, batch, row, place):
    """RecBole's Caser on the last items up to a place, filled up on the left."""
    items = batch["item_id_list"][row, : place + 1].tolist()[-3:]
    window = torch.tensor([[0] * (3 - len(items)) + items])
    return Caser.forward(model, batch["user_id"][row : row + 1], window)[0]


OUTPUTS = {"SASRecCD": last_output, "GRU4RecCD": last_output, "CaserCD": window_output}


def loss_by_hand(config, dataset, model, batch):
    """Eq. 8 to 10, one target at a time: RecBole's model on the items up to it, scores by dot product, KL as defined."""
    terms = []
    dense = batch["item_id"].dim() == 2
    for row in range(len(batch["user_id"])):
        places = range(int(batch["item_length"][row])) if dense else [int(batch["item_length"][row]) - 1]
        for place in places:
            at = (row, place) if dense else (row,)
            if batch["item_id"][at] != 0:
                output = OUTPUTS[config["model"]](model, batch, row, place)
                terms.append(term_by_hand(config, dataset, batch, at, model.item_embedding.weight @ output))
    return torch.stack(terms).mean() + regularization_by_hand(config, model)


def term_by_hand(config, dataset, batch, at, scores):
    positive, negative = batch["item_id"][at], batch["neg_item_id"][at]
    distributions, p = dataset.categories.distribution.tolist(), batch[PREFERENCE][at].tolist()
    kl = [reference.kl(p, distributions[int(item)], config["beta"]) for item in (positive, negative)]
    margin = scores[positive] - scores[negative]
    return -config["bpr_weight"] * logsigmoid(margin) - config["gamma"] * logsigmoid(margin - kl[0] + kl[1])


def regularization_by_hand(config, model):
    if config["model"] != "CaserCD":
        return 0
    parts = [model.user_embedding, model.item_embedding, model.conv_v, model.fc1, model.fc2, *model.conv_h]
    return config["reg_weight"] * sum(part.weight.square().sum().sqrt() for part in parts)


def assert_same_with_gradient(model, loss, expected):
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    parameters = dict(model.named_parameters())
    got = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    want = torch.autograd.grad(expected, list(parameters.values()), allow_unused=True)
    for name, one, other in zip(parameters, got, want, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize(("gamma", "bpr_weight"), WEIGHTS)
@pytest.mark.parametrize("positions", ["all", "last"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_loss_and_gradient_are_those_made_by_hand(make_batch, name, gamma, bpr_weight, positions):
    changes = {"gamma": gamma, "bpr_weight": bpr_weight, "train_positions": positions}
    if name == "CaserCD":
        changes |= {"caser_window": 3, "reg_weight": 0.01}
    config, dataset, model, batch = make_batch(name, **changes)
    assert_same_with_gradient(model, model.calculate_loss(batch), loss_by_hand(config, dataset, model, batch))


@pytest.mark.parametrize(("gamma", "bpr_weight"), WEIGHTS)
@pytest.mark.parametrize("ft_ratio", [0.0, 1.0])
def test_bert4rec_loss_is_made_at_the_masked_positions(make_batch, gamma, bpr_weight, ft_ratio):
    config, dataset, model, batch = make_batch(
        "BERT4RecCD", gamma=gamma, bpr_weight=bpr_weight, ft_ratio=ft_ratio, mask_ratio=0.5
    )
    items, lengths = batch["item_id"], batch["item_length"]
    last = torch.arange(len(items)), lengths - 1
    torch.manual_seed(1)
    masked = model._mask(items, last)
    terms = []
    for row, length in enumerate(lengths.tolist()):
        # The items after the first, up to the last target, some of them masked.
        tokens = [*batch["item_id_list"][row, 1:length].tolist(), int(items[row, length - 1])]
        tokens = [model.mask_token if masked[row, place] else token for place, token in enumerate(tokens)]
        outputs = BERT4Rec.forward(model, torch.tensor([tokens]))[0]
        for place in masked[row].nonzero()[:, 0].tolist():
            scores = model.item_embedding.weight[:-1] @ outputs[place] + model.output_bias
            terms.append(term_by_hand(config, dataset, batch, (row, place), scores))
    torch.manual_seed(1)
    assert_same_with_gradient(model, model.calculate_loss(batch), torch.stack(terms).mean())


def test_bert4rec_masks_targets_at_the_ratio_asked_for_and_at_least_one(make_batch):
    _, _, model, _ = make_batch("BERT4RecCD", ft_ratio=0.3, mask_ratio=0.4)
    targets = torch.ones(20_000, 10, dtype=torch.long)
    targets[:, :4] = 0  # context of a window that was trained before
    lengths = torch.full((20_000,), 8)
    targets[:, 8:] = 0
    masked = model._mask(targets, (torch.arange(20_000), lengths - 1))
    assert not masked[targets == 0].any()
    assert masked.any(1).all()
    none = 0.6**4  # of four targets, so that the last is taken instead
    only_last = 0.3 + 0.7 * none
    expected = [0.7 * 0.4] * 3 + [only_last + 0.7 * 0.4]
    assert masked[:, 4:8].float().mean(0).tolist() == pytest.approx(expected, abs=0.02)


def test_bert4rec_trained_on_its_last_item_alone_is_the_model_that_is_tested(make_batch):
    config, dataset, model, batch = make_batch("BERT4RecCD", ft_ratio=1.0)
    scores = model.full_sort_predict(batch)  # RecBole's: a mask after the last item, the first item left out
    at = [(row, int(length) - 1) for row, length in enumerate(batch["item_length"])]
    terms = [term_by_hand(config, dataset, batch, place, scores[place[0]]) for place in at]
    assert model.calculate_loss(batch).item() == pytest.approx(torch.stack(terms).mean().item(), rel=1e-4)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_dacsr_loss_is_the_one_made_by_hand(make_batch, weight):
    config, dataset, model, batch = make_batch("DACSR", dacsr_lambda=weight)
    torch.manual_seed(1)
    loss = model.calculate_loss(batch)
    torch.manual_seed(1)
    chosen = torch.multinomial((batch["item_id"] != 0).float(), 1)[:, 0].tolist()
    embeddings, distributions = model.item_embedding.weight, dataset.categories.distribution.float()
    accuracy, calibration = [], []
    for row, length in enumerate(batch["item_length"].tolist()):
        for place in range(length):
            if batch["item_id"][row, place] == 0:
                continue
            alone = batch["item_id_list"][row : row + 1, : place + 1], torch.tensor([place + 1])
            first, second = SASRec.forward(model.accuracy, *alone)[0], SASRec.forward(model.calibration, *alone)[0]
            gate = torch.sigmoid(model.gate.weight @ torch.cat([first, second]) + model.gate.bias)
            both = gate * first + (1 - gate) * second
            difference = embeddings[batch["item_id"][row, place]] - embeddings[batch["neg_item_id"][row, place]]
            accuracy.append(-logsigmoid(first @ difference) - logsigmoid(both @ difference))
            if place == chosen[row]:
                p = batch[PREFERENCE][row, place]
                for output in (second, both):
                    q = torch.softmax(embeddings[1:] @ output, 0) @ distributions[1:]
                    smoothed = (1 - config["beta"]) * q + config["beta"] * p
                    calibration.append(sum(x * (x / y).log() for x, y in zip(p, smoothed, strict=True) if x > 0))
    expected = (1 - weight) * torch.stack(accuracy).mean() + weight * torch.stack(calibration).mean() * 2
    assert_same_with_gradient(model, loss, expected)


@pytest.mark.parametrize("name", OWN)
def test_gradient_reaches_every_parameter(make_batch, name):
    _, _, model, batch = make_batch(name)
    model.calculate_loss(batch).backward()
    # A constant added to every key drops out of the softmax.
    unreached = [
        parameter for parameter, value in model.named_parameters()
        if value.grad is None or (not value.grad.abs().max() > 1e-7 and "key.bias" not in parameter)
    ]  # fmt: skip
    assert unreached == []


@pytest.mark.parametrize("name", OWN)
def test_a_saved_model_scores_the_same_after_loading(prepare, name, tmp_path):
    config, dataset, (train, _, test) = prepare(name, output_dir=str(tmp_path))
    trainer = LeapRecTrainer(config, config.model_class(config, train.dataset), dataset)
    trainer._train_epoch(train, 0)
    trainer._save_checkpoint(0)
    fresh = LeapRecTrainer(config, config.model_class(config, train.dataset), dataset)
    batch = next(iter(test))[0]
    before = fresh.model.eval().full_sort_predict(batch)
    fresh.load(trainer.saved_model_file)
    after = fresh.model.eval().full_sort_predict(batch)
    assert torch.equal(after, trainer.model.eval().full_sort_predict(batch))
    assert not torch.equal(after, before)


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_model_takes_a_step_and_is_evaluated(make_config, prepare, name, tmp_path):
    config, dataset, (train, valid, _) = prepare(name, output_dir=str(tmp_path), **NEEDED.get(name.removesuffix("CD"), {}))
    init_seed(1, True)
    trainer = LeapRecTrainer(config, config.model_class(config, train.dataset), dataset)
    before = {parameter: value.clone() for parameter, value in trainer.model.named_parameters()}
    loss = trainer._train_epoch(train, 0)
    assert math.isfinite(loss)
    assert any(not torch.equal(value, before[parameter]) for parameter, value in trainer.model.named_parameters())
    result = trainer.evaluate(valid, load_best_model=False)
    assert 0 <= result["ndcg@10"] <= 1


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
    assert issubclass(get_model("NARMCD"), get_model("NARM"))
    assert get_model("NARMCD") is get_model("NARMCD")
    assert {"GRU4Rec", "Caser", "BERT4Rec", "STAMPCD"} <= set(known_models())


@pytest.mark.parametrize("name", UNSUPPORTED)
@pytest.mark.parametrize("suffix", ["", "CD"])
def test_a_model_that_cannot_run_is_refused_with_the_reason(make_config, name, suffix):
    with pytest.raises(ValueError, match=f"model '{name}{suffix}' is not supported: {UNSUPPORTED[name]}"):
        make_config(name + suffix)


@pytest.mark.parametrize(("name", "near"), [("SASRecCd", "SASRecCD"), ("SASReCCD", "SASRecCD"), ("GRU4rec", "GRU4Rec")])
def test_unknown_models_are_refused_with_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"unknown model '{name}'; did you mean '{near}'"):
        get_model(name)


def test_anomaly_detection_that_recbole_switches_on_is_off():
    assert not torch.is_anomaly_enabled()


DROPOUT = ("hidden_dropout_prob", "attn_dropout_prob", "dropout_prob")
QUICK = {
    "MAX_ITEM_LIST_LENGTH": 20,
    "train_batch_size": 32,
    "learning_rate": 0.003,
    "epochs": 4,
    **dict.fromkeys(DROPOUT, 0.1),
}
# The cloze task trains the masked positions alone, and needs more and smaller steps.
CLOZE = {"mask_ratio": 0.5, "train_batch_size": 16, "learning_rate": 0.001, "epochs": 7, **dict.fromkeys(DROPOUT, 0.0)}


@pytest.mark.parametrize("name", OWN)
def test_a_few_epochs_on_ml_100k_beat_popularity(name, tmp_path):
    settings = {
        **QUICK,
        **(CLOZE if name == "BERT4RecCD" else {}),
        "show_progress": False,
        "output_dir": str(tmp_path / "run"),
    }
    result = run_leaprec(model=name, dataset="ml-100k", config_dict=settings)

    config = LeapRecConfig(name, "ml-100k", config_dict=settings)
    dataset = create_dataset(config)
    train, valid, _ = data_preparation(config, dataset)
    popularity = torch.bincount(train.dataset.inter_feat["item_id"], minlength=dataset.item_num).float()
    trainer = LeapRecTrainer(config, config.model_class(config, train.dataset), dataset)
    trainer.model.full_sort_predict = lambda interaction: popularity.repeat(len(interaction), 1)
    by_popularity = trainer.evaluate(valid, load_best_model=False)["ndcg@10"]
    assert result["backbone"]["valid"]["ndcg@10"] > by_popularity > 0.03
