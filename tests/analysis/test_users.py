"""How S_KL spreads over users, and what one user gets, against plain computations."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from recbole_leaprec import run_leaprec
from recbole_leaprec.analysis.density import density
from recbole_leaprec.analysis.measure import measure
from recbole_leaprec.analysis.measurement import FILE, Measurement
from recbole_leaprec.cli import main
from recbole_leaprec.evaluator.per_user import METRICS
from tests import reference
from tests.toy import SMALL, write_dataset


def test_density_is_a_sum_of_kernels_and_of_their_reflections_at_0():
    values, grid = np.array([0.0, 0.1, 0.1, 0.7, 1.5]), np.array([0.0, 0.2, 1.0])
    width = values.std(ddof=1) * len(values) ** (-1 / 5)  # Scott's rule
    for x, found in zip(grid, density(values, grid), strict=True):
        kernels = [math.exp(-(((x - v) / width) ** 2) / 2) + math.exp(-(((x + v) / width) ** 2) / 2) for v in values]
        assert found == pytest.approx(sum(kernels) / (len(values) * width * math.sqrt(2 * math.pi)))
    wide = np.linspace(0, 12, 4001)
    assert density(values, wide).sum() * (wide[1] - wide[0]) == pytest.approx(1, abs=1e-2)


def test_users_that_are_all_alike_have_no_density():
    assert np.isnan(density(np.full(5, 0.3), np.linspace(0, 1, 4))).all()
    assert np.isnan(density(np.array([0.3]), np.linspace(0, 1, 4))).all()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """`(checkpoint, data_path)` of a small run."""
    folder = tmp_path_factory.mktemp("users")
    genres = ["Action", "Comedy", "Drama"]
    inter = [(f"u{u}", f"i{(7 * u + 3 * n) % 30}", n) for u in range(20) for n in range(4 + u % 7)]
    items = {f"i{i}": f"{genres[i % 3]}{' Horror' if i % 5 == 0 else ''}" for i in range(30)}
    data = write_dataset(folder / "data", inter, {**items, "i21": ""})
    result = run_leaprec(
        "SASRecCD", "toy",
        config_dict={**SMALL, "data_path": str(data), "topk": 5, "valid_metric": "NDCG@5", "output_dir": str(folder / "run")},
    )  # fmt: skip
    return f"{result['folder']}/model.pth", data


def test_a_measurement_holds_every_users_list_history_and_place(trained, tmp_path):
    checkpoint, data = trained
    measured = measure(checkpoint, {"leaprec": [0.0, 0.9], "none": [0.3]}, {"output_dir": str(tmp_path / "out")})
    rows = [line.split("\t") for line in (data / "toy" / "toy.inter").read_text().splitlines()[1:]]
    names = {
        line.split("\t")[0]: line.split("\t")[1].split() for line in (data / "toy" / "toy.item").read_text().splitlines()[1:]
    }
    assert list(measured.place) == [("none", 0.0), ("leaprec", 0.0), ("leaprec", 0.9)]
    assert sorted(measured.users) == sorted({user for user, _, _ in rows})
    categories = measured.categories.tolist()
    assert sorted(categories) == ["Action", "Comedy", "Drama", "Horror"]
    for number, user in enumerate(measured.users):
        own = [item for name, item, _ in rows if name == user]
        assert measured.items[measured.targets[number]] == own[-1]
        history = [measured.items[item] for item in measured.history[number] if item]
        assert history == own[:-1][-20:]
        assert measured.history_length[number] == len(own) - 1
        shares = {item: reference.distribution(names[item], categories) for item in names}
        p = reference.preference([shares[item] for item in own[:-1]], 0.9)
        assert measured.preference(number) == pytest.approx(p, abs=1e-6)
        for place in range(3):
            listed = [measured.items[item] for item in measured.lists[place, number]]
            q = reference.mean([shares[item] for item in listed], 4)
            assert measured.metric("skl")[place, number] == pytest.approx(reference.kl(p, q, 0.01), abs=1e-6)
            hit = own[-1] in listed
            assert measured.metric("hit")[place, number] == hit
            assert measured.metric("ndcg")[place, number] == pytest.approx(
                1 / math.log2(listed.index(own[-1]) + 2) if hit else 0
            )
    assert (measured.ranks[:2] == np.arange(1, 6)).all()  # the model's own ranking, and lambda 0
    assert (measured.ranks[2] != np.arange(1, 6)).any()
    for number in range(len(measured.users)):  # an item has the same place wherever it stands
        place_of = dict(zip(measured.lists[0, number], measured.ranks[0, number], strict=True))
        for item, rank in zip(measured.lists[2, number], measured.ranks[2, number], strict=True):
            assert place_of.get(item, rank) == rank
    measured.save(tmp_path / FILE)
    again = Measurement.load(tmp_path / FILE)
    assert again.info == measured.info
    for name in ("figures", "lists", "users", "shift"):
        np.testing.assert_array_equal(getattr(again, name), getattr(measured, name))


def test_names_of_items_come_from_the_title_field(trained, tmp_path):
    checkpoint, _ = trained
    measured = measure(checkpoint, {}, {"output_dir": str(tmp_path / "out"), "title_field": "genre"})
    assert {"Action Horror", "Comedy", "Drama"} <= set(measured.items)
    with pytest.raises(ValueError, match=r"no field 'titel' \(title_field\).*its fields are item_id, genre"):
        measure(checkpoint, {}, {"output_dir": str(tmp_path / "other"), "title_field": "titel"})


def test_tensorboard_has_every_metric_of_every_validation(trained):
    events = EventAccumulator(str(Path(trained[0]).parent / "tensorboard")).Reload()
    for metric in METRICS:
        assert [event.step for event in events.Scalars(f"Valid/{metric}@5")] == [0, 1]
    best = json.loads((Path(trained[0]).parent / "result.json").read_text())
    at_best = events.Scalars("Valid/skl@5")[best["best_epoch"]].value
    assert at_best == pytest.approx(best["backbone"]["valid"]["skl@5"])


def test_a_broken_measurement_is_named(tmp_path):
    (tmp_path / FILE).write_bytes(b"not one")
    with pytest.raises(ValueError, match=r"measured\.npz is not a measurement"):
        Measurement.load(tmp_path / FILE)


def test_a_measurement_that_was_cut_off_is_named(trained, tmp_path):
    measure(trained[0], {}, {"output_dir": str(tmp_path / "out")}).save(tmp_path / FILE)
    whole = (tmp_path / FILE).read_bytes()
    for length in (len(whole) // 2, len(whole) - 10):
        (tmp_path / FILE).write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"measured\.npz is not a measurement"):
            Measurement.load(tmp_path / FILE)


@pytest.mark.parametrize("seed", [None, [1], True, "2020"])
def test_a_measurement_whose_seed_was_changed_is_named(trained, tmp_path, seed):
    measured = measure(trained[0], {}, {"output_dir": str(tmp_path / "out")})
    measured.info["config"]["seed"] = seed
    measured.save(tmp_path / FILE)
    with pytest.raises(ValueError, match=r"measured\.npz .*the seed in its config"):
        Measurement.load(tmp_path / FILE)


def test_a_measurement_with_a_checkpoint_that_is_no_path_is_named(trained, tmp_path):
    measured = measure(trained[0], {}, {"output_dir": str(tmp_path / "out")})
    measured.info["checkpoint"] = "model\0.pth"
    measured.save(tmp_path / FILE)
    with pytest.raises(ValueError, match=r"measured\.npz .*its 'checkpoint' is no path"):
        Measurement.load(tmp_path / FILE)


def test_the_users_command_leaves_values_densities_and_a_case_study(trained, tmp_path, capsys):
    checkpoint, _ = trained
    out = tmp_path / "out"
    assert main(["users", f"--checkpoint={checkpoint}", "--user=u3", "--lambdas=0,0.9", f"--output_dir={out}"]) == 0
    shown = capsys.readouterr().out
    values, table = pd.read_csv(out / "users.csv"), pd.read_csv(out / "density.csv")
    assert len(values) == 20 * 2
    for lam, rows in values.groupby("lambda"):
        own = table[table["lambda"] == lam]
        assert own["mean_skl"].iloc[0] == pytest.approx(rows["skl@5"].mean())
        assert own["density"].to_numpy() == pytest.approx(density(rows["skl@5"].to_numpy(), own["skl"].to_numpy()))
    case = (out / "case-u3.md").read_text()
    assert case in shown
    assert "- i21 [no category]" in case
    measured = Measurement.load(out / "measured" / FILE)
    number = measured.users.tolist().index("u3")
    for lam in (0.0, 0.9):
        skl = measured.figures[measured.place["leaprec", lam], METRICS.index("skl"), number]
        assert f"lambda {lam:g}: S_KL@5 {skl:.4f}" in case
    assert case.count("the next item**") == int(measured.metric("hit")[[1, 2], number].sum())
    assert (out / "density.png").stat().st_size
    assert (out / "density.svg").stat().st_size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--user=u99"], "no test user 'u99'"),
        (["--lambdas=2"], r"lambdas must be numbers in [0, 1], got 2"),
        (["--reranker=leaprek"], "leaprec"),
        (["--epochs=3"], "unknown option or key 'epochs'"),
        (["--reranker=none"], "reranker: none has no lambda"),
        (["--rerank_lambda=0.5"], "unknown option or key 'rerank_lambda'"),
        (["--user=007"], "no test user '007'"),
    ],
)
def test_what_is_wrong_is_said(trained, tmp_path, arguments, message, capsys):
    assert main(["users", f"--checkpoint={trained[0]}", f"--output_dir={tmp_path / 'out'}", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()  # issue 21: an unknown user left an empty folder
