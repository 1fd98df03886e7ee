"""The models' losses, against losses put together by hand from RecBole's own forward; and models by name."""

import copy
import math
import subprocess
import sys

import pytest
import torch
from recbole.model.sequential_recommender import BERT4Rec, Caser, GRU4Rec, SASRec
from recbole.utils import init_seed
from torch.nn.functional import logsigmoid

from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import HISTORY_END, create_dataset, data_preparation
from recbole_leaprec.model import get_model
from recbole_leaprec.model.cd_mixin import PREFERENCE, ConfigWith
from recbole_leaprec.model.negatives import SharedNegatives
from recbole_leaprec.quick_start import run_leaprec
from recbole_leaprec.settings.model_names import UNSUPPORTED, known_models
from recbole_leaprec.trainer import LeapRecTrainer
from tests import reference

NEGATIVES = "drawn negatives"  # of a batch, where the test keeps them
WEIGHTS = [(0.1, 1.0), (0.0, 1.0), (0.5, 0.0), (2.0, 0.3)]
OWN = ["SASRecCD", "GRU4RecCD", "CaserCD", "BERT4RecCD", "DACSR", "LiGRCD"]
OTHERS = sorted(set(known_models()) - set(OWN))
NEEDED = {name: {"reranker_CAN_NUM": "20"} for name in ("SASRecCPR", "GRU4RecCPR")}  # the toy catalogue is below 100


@pytest.fixture(autouse=True)
def one_thread():
    """Models train alike on any number; with more than one, on a busy machine, they wait for each other at every small step."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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
        batch[PREFERENCE] = dataset.sequences.preference(batch[HISTORY_END], dataset.categories, alpha)
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


def ligr_output(model, batch, row, place):
    """LiGR of the items up to a place, alone: a pair of positions, a head and a category at a time."""
    items = batch["item_id_list"][row, : place + 1].tolist()
    x = [v * math.sqrt(len(v)) + model.position_embedding.weight[n] for n, v in enumerate(item_table(model)[items])]
    for block in model.encoder.layer:
        normal = [block.norm_before_attention(one) for one in x]
        added = [block.mixed(attention_by_hand(block, normal[: n + 1])) for n in range(len(x))]
        x = [one + new * block.attention_gate(before).sigmoid() for one, new, before in zip(x, added, normal, strict=True)]
        x = [one + feed_forward_by_hand(block, block.norm_before_feed_forward(one)) for one in x]
    return model.norm(x[-1])


def attention_by_hand(block, seen):
    """What the last of the vectors seen gets from all of them."""
    size = len(seen[0]) // block.heads
    query, keys, values = (torch.stack([block.query_key_value(one) for one in seen]).chunk(3, -1)[part] for part in range(3))
    mixed = []
    for head in range(block.heads):
        own = slice(head * size, (head + 1) * size)
        weights = [
            query[-1, own] @ keys[n, own] / math.sqrt(size) + block.by_distance[head, len(seen) - 1 - n]
            for n in range(len(seen))
        ]
        mixed.append(sum(w * v for w, v in zip(torch.stack(weights).softmax(0), values[:, own], strict=True)))
    return torch.cat(mixed)


def feed_forward_by_hand(block, normal):
    gate, value = block.widened(normal).chunk(2)
    return block.narrowed(gate * gate.sigmoid() * value) * block.feed_forward_gate(normal).sigmoid()


def item_table(model):
    """`[I, H]`: the items' vectors."""
    if not hasattr(model.item_embedding, "of_category"):
        return model.item_embedding.weight
    shares = reference.rows(model.categories).float()
    return model.item_embedding.own.weight + shares @ model.item_embedding.of_category.weight


OUTPUTS = {"SASRecCD": last_output, "GRU4RecCD": last_output, "CaserCD": window_output, "LiGRCD": ligr_output}


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
                terms.append(term_by_hand(config, dataset, batch, at, item_table(model) @ output))
    return torch.stack(terms).mean() + regularization_by_hand(config, model)


def term_by_hand(config, dataset, batch, at, scores):
    distributions, p = reference.rows(dataset.categories).tolist(), batch[PREFERENCE][at].tolist()
    if config["loss_type"] == "softmax":
        return softmax_by_hand(config, batch["item_id"][at], batch[NEGATIVES], distributions, p, scores)
    positive, negative = batch["item_id"][at], batch["neg_item_id"][at]
    kl = [reference.kl(p, distributions[int(item)], config["beta"]) for item in (positive, negative)]
    margin = scores[positive] - scores[negative]
    return -config["bpr_weight"] * logsigmoid(margin) - config["gamma"] * logsigmoid(margin - kl[0] + kl[1])


def softmax_by_hand(config, positive, drawn, distributions, p, scores):
    """Cross-entropy on r and on r - KL, of the positive among the negatives that were drawn, itself not among them."""
    items = [int(positive), *(item for item in drawn if item != positive)]
    kl = torch.tensor([reference.kl(p, distributions[item], config["beta"]) for item in items])
    plain, disentangled = scores[items].log_softmax(0)[0], (scores[items] - kl).log_softmax(0)[0]
    return -config["bpr_weight"] * plain - config["gamma"] * disentangled


def record_negatives(model, batch):
    """Have the batch know the negatives that are drawn for it."""
    draw = model._shared.draw

    def recorded(device):
        items, correction = draw(device)
        batch[NEGATIVES] = items.tolist()
        return items, correction

    model._shared.draw = recorded


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
    changes = {"loss_type": "BPR", "gamma": gamma, "bpr_weight": bpr_weight, "train_positions": positions}
    if name == "CaserCD":
        changes |= {"caser_window": 3, "reg_weight": 0.01}
    config, dataset, model, batch = make_batch(name, **changes)
    assert_same_with_gradient(model, model.calculate_loss(batch), loss_by_hand(config, dataset, model, batch))


@pytest.mark.parametrize(("gamma", "bpr_weight"), WEIGHTS)
@pytest.mark.parametrize("positions", ["all", "last"])
@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("number", [7, "all"])
def test_softmax_loss_and_gradient_are_those_made_by_hand(make_batch, name, gamma, bpr_weight, positions, number):
    changes = {"gamma": gamma, "bpr_weight": bpr_weight, "train_positions": positions}
    if name == "CaserCD":
        changes |= {"caser_window": 3, "reg_weight": 0.01}
    config, dataset, model, batch = make_batch(name, loss_type="softmax", num_negatives=number, **changes)
    record_negatives(model, batch)
    loss = model.calculate_loss(batch)
    assert len(batch[NEGATIVES]) == (dataset.item_num - 1 if number == "all" else number)
    assert_same_with_gradient(model, loss, loss_by_hand(config, dataset, model, batch))


@pytest.mark.parametrize("name", ["SASRecCD", "NARMCD", "FPMCCD", "SINECD"])
def test_softmax_over_all_items_without_the_cd_term_is_cross_entropy_over_the_catalogue(make_batch, name):
    _, _, model, batch = make_batch(name, loss_type="softmax", num_negatives="all", gamma=0.0, train_positions="last")
    scores = model.full_sort_predict(batch)[:, 1:]  # without padding
    expected = torch.nn.functional.cross_entropy(scores, batch["item_id"] - 1)
    assert model.calculate_loss(batch).item() == pytest.approx(expected.item(), rel=1e-5)


def test_shared_negatives_are_drawn_anew_each_once_and_never_padding():
    negatives = SharedNegatives(50, 20)
    first, second = (negatives.draw()[0].tolist() for _ in range(2))
    assert first != second
    for drawn in (first, second):
        assert len(set(drawn)) == 20
        assert all(1 <= item < 50 for item in drawn)
    assert negatives.draw()[1] is None


def test_positives_are_found_among_their_negatives():
    negatives = SharedNegatives(50, 20)
    items, _ = negatives.draw()
    positive = torch.randint(1, 50, (200,))
    position, column = negatives.positives_among(positive, items)
    assert {(int(t), int(m)) for t, m in zip(position, column, strict=True)} == {
        (t, m) for t in range(200) for m in range(20) if positive[t] == items[m]
    }
    assert len(position)


def test_uneven_draws_are_corrected_to_the_mean_of_even_ones():
    torch.manual_seed(0)
    scores = torch.randn(30)
    weights = torch.arange(30.0) ** 0.7
    negatives = SharedNegatives(30, 8, weights)
    sums = []
    for _ in range(20_000):
        items, correction = negatives.draw()
        sums.append((scores[items] + correction).exp().sum())
    assert torch.stack(sums).mean().item() == pytest.approx(8 * scores[1:].exp().mean().item(), rel=0.02)


def test_popular_items_are_drawn_by_how_often_training_has_them(make_batch):
    arguments = {"distribution": "popularity", "sample_num": 1, "alpha": 1.0, "dynamic": False}
    _, dataset, model, batch = make_batch(loss_type="softmax", num_negatives=5, train_neg_sample_args=arguments)
    assert torch.isfinite(model.calculate_loss(batch))
    drawn = torch.cat([model._shared.draw()[0] for _ in range(400)])
    counts = torch.bincount(drawn, minlength=dataset.item_num)[1:].double()
    training = torch.zeros(dataset.item_num, dtype=torch.double)
    for items in dataset.sequences.items.split((dataset.sequences.offsets[1:] - dataset.sequences.offsets[:-1]).tolist()):
        training += torch.bincount(items[:-2], minlength=dataset.item_num)
    assert torch.corrcoef(torch.stack([counts, training[1:]]))[0, 1] > 0.8


@pytest.mark.parametrize(("gamma", "bpr_weight"), WEIGHTS)
@pytest.mark.parametrize("ft_ratio", [0.0, 1.0])
@pytest.mark.parametrize("loss_type", ["BPR", "softmax"])
def test_bert4rec_loss_is_made_at_the_masked_positions(make_batch, gamma, bpr_weight, ft_ratio, loss_type):
    weights = {"gamma": gamma, "bpr_weight": bpr_weight}
    config, dataset, model, batch = make_batch(
        "BERT4RecCD", **weights, ft_ratio=ft_ratio, mask_ratio=0.5, loss_type=loss_type, num_negatives="all"
    )
    if loss_type == "softmax":
        batch[NEGATIVES] = list(range(1, dataset.item_num))
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
    embeddings, distributions = model.item_embedding.weight, reference.rows(dataset.categories).float()
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


@pytest.mark.parametrize("name", [name for name in OTHERS if name.endswith("CD")])
def test_every_other_model_has_a_softmax_loss_whose_gradient_is_finite(make_batch, name):
    _, _, model, batch = make_batch(name, loss_type="softmax", num_negatives=7, **NEEDED.get(name.removesuffix("CD"), {}))
    model.calculate_loss(batch).backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


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


@pytest.mark.parametrize("name", ["NARMCD", "FEARecCD", "SASRecCD"])
def test_a_model_and_what_it_was_made_with_can_be_copied(make_batch, name):
    config, _, model, batch = make_batch(name)
    twin = copy.deepcopy(model)
    assert copy.deepcopy(ConfigWith(config, gamma=7))["gamma"] == 7
    assert torch.equal(twin.full_sort_predict(batch), model.full_sort_predict(batch))
    with torch.no_grad():
        next(twin.parameters()).add_(1)
    assert not torch.equal(twin.full_sort_predict(batch), model.full_sort_predict(batch))


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


def test_sasreccd_scores_as_recboles_own_sasrec(prepare):
    config, dataset, (train, _, test) = prepare(MAX_ITEM_LIST_LENGTH=30)
    model, plain = (
        config.model_class(config, train.dataset).eval(),
        SASRec(ConfigWith(config, loss_type="CE"), dataset).eval(),
    )
    plain.load_state_dict(model.state_dict())
    batch = next(iter(test))[0]
    assert (batch["item_length"] < batch["item_id_list"].shape[1]).any()  # some are padded
    torch.testing.assert_close(model.full_sort_predict(batch), plain.full_sort_predict(batch), rtol=1e-4, atol=1e-5)


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


@pytest.mark.slow
@pytest.mark.parametrize("module", ["compat", "config", "trainer"])
def test_anomaly_detection_that_recbole_switches_on_is_off(module):
    program = (
        f"import recbole_leaprec.{module}, recbole.model.sequential_recommender, torch; print(torch.is_anomaly_enabled())"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"


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


@pytest.mark.slow
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
