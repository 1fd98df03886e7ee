"""A study from its file to its page: what is trained once stays, and every figure is one that can be worked out by hand."""

import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from recbole_leaprec import evaluate
from recbole_leaprec.analysis.curves import Comparison, Curve, compare, curve_table
from recbole_leaprec.analysis.measurement import FILE, Measurement
from recbole_leaprec.analysis.significance import holm, paired_test
from recbole_leaprec.cli import main
from recbole_leaprec.evaluator.per_user import METRICS
from recbole_leaprec.reranking import Reranking
from recbole_leaprec.study import study
from recbole_leaprec.study.spec import Spec
from tests.toy_study import LAMBDAS, spec_file


def test_a_study_trains_each_variant_once_a_seed_and_leaves_its_tables(finished_study):
    folder, _ = finished_study
    parts = sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))
    assert parts == [f"{name}-{seed}" for name in ("DACSR", "SASRec-BPR", "SASRec-CD") for seed in (1, 2)]
    names = ("tradeoff", "ablation", "density", "shift")
    assert all((folder / f"{name}{end}").stat().st_size for name in names for end in (".png", ".svg"))
    for name in ("tradeoff.csv", "comparison.csv", "times.csv", "density.csv", "shift.csv", "report.html"):
        assert (folder / name).stat().st_size
    times = pd.read_csv(folder / "times.csv").set_index("method")
    assert times["lambdas"].to_dict() == {"LeapRec": 3, "CaliRec": 1, "DACSR": 1, "(-)CD": 3}


def test_figures_of_a_study_are_means_over_its_seeds(finished_study):
    folder, _ = finished_study
    table = pd.read_csv(folder / "tradeoff.csv").set_index(["method", "reranker", "lambda"])
    for method, part, reranker in (("LeapRec", "SASRec-CD", "leaprec"), ("(-)CD", "SASRec-BPR", "leaprec")):
        runs = []
        for seed in (1, 2):
            again = {"output_dir": str(folder.parent / f"again-{method}-{seed}")}
            runs.append(evaluate(folder / f"{part}-{seed}" / "model" / "model.pth", again, [Reranking(reranker, 0.9)]))
        for metric in METRICS:
            expected = np.mean([run["rerank"][0]["test"][f"{metric}@5"] for run in runs])
            assert table.loc[(method, reranker, 0.9), f"{metric}@5"] == pytest.approx(expected, abs=1e-4)
            own = np.mean([run["backbone"]["test"][f"{metric}@5"] for run in runs])
            assert table.loc[(method, "none", 0.0), f"{metric}@5"] == pytest.approx(own, abs=1e-4)


def test_methods_are_compared_where_their_s_kl_is_the_same(finished_study):
    """A user gets the one list or the other with such chances that the mean S_KL is what was asked for."""
    folder, _ = finished_study
    table = pd.read_csv(folder / "comparison.csv")
    runs = {name: [Measurement.load(folder / f"SASRec-{name}-{seed}" / FILE) for seed in (1, 2)] for name in ("CD", "BPR")}

    def users(variant, reranker, target):
        """By hand: nDCG of every user at that S_KL."""
        points = []
        for name, lam in [("none", 0.0), *((reranker, lam) for lam in LAMBDAS)]:
            figures = np.mean([run.figures[run.place[name, lam]] for run in runs[variant]], axis=0)
            points.append((figures[METRICS.index("skl")].mean(), figures[METRICS.index("ndcg")]))
        if points[0][0] <= target:
            return points[0][1]
        for (above, one), (below, other) in itertools.pairwise(points):
            if above > target >= below:
                chance = (above - target) / (above - below)
                return (1 - chance) * one + chance * other
        return None

    rows = table[(table["method"] == "(-)CD") & (table["metric"] == "ndcg")]
    assert len(rows)
    for _, row in rows.iterrows():
        ours, theirs = users("CD", "leaprec", row["skl"]), users("BPR", "leaprec", row["skl"])
        assert row["reference_value"] == pytest.approx(ours.mean())
        assert row["value"] == pytest.approx(theirs.mean())
        if (ours != theirs).any():
            assert row["p"] == pytest.approx(stats.ttest_rel(theirs, ours).pvalue)
    assert table["p_holm"].ge(table["p"] - 1e-12).all()
    assert (table["seeds"] == 2).all()


def test_seeds_are_compared_one_by_one_at_the_same_s_kl(finished_study):
    folder, _ = finished_study
    table = pd.read_csv(folder / "comparison.csv")
    row = next(
        row for _, row in table.iterrows() if row["method"] == "(-)CD" and row["metric"] == "ndcg" and row["difference"]
    )

    def one(name, seed):
        curve = Curve("x", "leaprec", [Measurement.load(folder / f"SASRec-{name}-{seed}" / FILE)])
        return curve.at_skl(row["skl"])[METRICS.index("ndcg")].mean()

    differences = [one("BPR", seed) - one("CD", seed) for seed in (1, 2)]
    assert row["spread"] == pytest.approx(abs(differences[0] - differences[1]) / math.sqrt(2))
    t = sum(differences) / abs(differences[0] - differences[1])
    assert row["p_seeds"] == pytest.approx(2 * (1 - stats.t.cdf(abs(t), 1)))


def test_a_mixture_has_the_s_kl_that_was_asked_for(finished_study):
    folder, _ = finished_study
    curve = Curve("x", "leaprec", [Measurement.load(folder / "SASRec-CD-1" / FILE)])
    skl = METRICS.index("skl")
    least, most = curve.figures[:, skl].mean(-1).min(), curve.base[skl].mean()
    for share in (0.1, 0.5, 0.9):
        target = least + share * (most - least)
        assert curve.at_skl(target)[skl].mean() == pytest.approx(target)
    assert curve.at_skl(most + 1) is not None
    assert curve.at_skl(least - 1e-3) is None


def test_differences_that_are_equal_but_for_rounding_are_equal():
    assert paired_test(np.array([0.1, 0.1 + 1e-17, 0.1 - 1e-17]) * 3) == (pytest.approx(0.3), 0.0)
    mean, p = paired_test(np.array([0.1, 0.1 + 1e-9, 0.1 - 1e-9]))
    assert 0 < p < 1e-6
    assert mean == pytest.approx(0.1)


def test_paired_test_and_holm_are_those_of_the_textbook():
    draw = np.random.default_rng(5)
    for users in (2, 3, 50):
        one, other = draw.normal(size=(2, users))
        mean, p = paired_test(one - other)
        difference = (one - other).tolist()
        average = sum(difference) / users
        deviation = math.sqrt(sum((d - average) ** 2 for d in difference) / (users - 1))
        t = average / (deviation / math.sqrt(users))
        assert mean == pytest.approx(average)
        assert p == pytest.approx(2 * stats.t.cdf(-abs(t), users - 1))
        assert p == pytest.approx(stats.ttest_rel(one, other).pvalue)
    assert paired_test(np.zeros(4)) == (0.0, 1.0)
    assert paired_test(np.full(4, 0.5)) == (0.5, 0.0)
    p = np.array([0.04, 0.01, 0.03, 0.5])
    # the least times four, the next times three but no less than that, and so on
    assert holm(p).tolist() == pytest.approx([0.09, 0.04, 0.09, 0.5])
    assert holm(np.array([])).tolist() == []
    mean, p = paired_test(np.array([0.5]))
    assert mean == 0.5
    assert math.isnan(p)


@pytest.mark.slow
def test_an_interrupted_study_goes_on_where_it_was(tmp_path, toy):
    """Killed in the middle, twice; in the end no part has been trained twice."""
    spec, out = spec_file(tmp_path, toy), tmp_path / "out"
    command = [sys.executable, "run_leaprec.py", "study", f"--spec={spec}", f"--output_dir={out}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for number in (1, 3):
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 300
        while len(list(out.glob("*/model/result.json"))) < number and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 130, errors
        assert "the same command goes on" in errors
        assert not (out / "report.html").exists()
    trained = {path: path.stat().st_mtime_ns for path in out.glob("*/model/result.json")}
    measured = {path: path.stat().st_mtime_ns for path in out.glob(f"*/{FILE}")}
    assert 3 <= len(trained) < 6
    study(spec, out, show_progress=False)
    assert (out / "report.html").exists()
    assert len(list(out.glob(f"*/{FILE}"))) == 6
    for path, when in {**trained, **measured}.items():
        assert path.stat().st_mtime_ns == when
    assert not list(out.rglob("*.part"))


def test_a_study_shows_its_progress_unless_its_settings_say_otherwise(tmp_path, toy, capsys):
    """Before, show_progress among the settings did nothing."""
    methods = {"SASRec": {"variant": "BPR"}}
    spec = spec_file(
        tmp_path, toy, seeds=[1], variants={"BPR": {"gamma": 0}}, methods=methods, ablations={}, reference="SASRec"
    )
    assert main(["study", f"--spec={spec}", f"--output_dir={tmp_path / 'quiet'}"]) == 0
    assert not {"part", "training:", "evaluating:"} & {*capsys.readouterr().err.split()}
    assert main(["study", f"--spec={spec}", f"--output_dir={tmp_path / 'shown'}", "--show_progress=True"]) == 0
    assert {"part", "training:", "evaluating:"} <= {*capsys.readouterr().err.split()}


@pytest.mark.slow
def test_methods_and_seeds_may_be_added_and_settings_may_not_change(tmp_path, toy):
    variants = {"BPR": {"gamma": 0}}
    methods = {"LeapRec": {"variant": "BPR", "reranker": "leaprec"}}
    small = {"seeds": [1], "variants": variants, "methods": methods, "ablations": {}}
    out = tmp_path / "out"
    study(spec_file(tmp_path, toy, **small), out, show_progress=False)
    when = (out / "SASRec-BPR-1" / "model" / "result.json").stat().st_mtime_ns
    more = {**small, "seeds": [1, 2], "methods": {**methods, "CaliRec": {"variant": "BPR", "reranker": "calirec"}}}
    study(spec_file(tmp_path, toy, **more), out, show_progress=False)
    assert (out / "SASRec-BPR-1" / "model" / "result.json").stat().st_mtime_ns == when
    assert set(pd.read_csv(out / "tradeoff.csv")["method"]) == {"LeapRec", "CaliRec"}
    with pytest.raises(ValueError, match="SASRec-BPR-1, trained with epochs: 1 and not 2"):
        study(spec_file(tmp_path, toy, **more), out, {"epochs": 2}, show_progress=False)


@pytest.mark.slow
def test_a_study_with_a_dropout_by_the_data_goes_on_whatever_has_no_part_in_its_models(tmp_path, toy):
    variants, methods = {"BPR": {"gamma": 0}}, {"LeapRec": {"variant": "BPR", "reranker": "leaprec"}}
    small = {"seeds": [1], "variants": variants, "methods": methods, "ablations": {}}
    spec, out = spec_file(tmp_path, toy, **small), tmp_path / "out"
    for cached in (True, False):
        study(spec, out, {"hidden_dropout_prob": "auto", "data_cache": cached}, show_progress=False)
    with pytest.raises(ValueError, match=r"trained with hidden_dropout_prob: 0\.\d+ and not 0\.05"):
        study(spec, out, {"hidden_dropout_prob": 0.05}, show_progress=False)


def test_a_study_of_several_datasets_does_not_write_over_one_of_one_dataset(tmp_path, toy, finished_study):
    folder, _ = finished_study
    before = {path: path.read_bytes() for path in (folder / "study.yaml", folder / "report.html")}
    spec = spec_file(tmp_path, toy, datasets=["toy"])
    content = yaml.safe_load(spec.read_text())
    del content["settings"]["dataset"]
    spec.write_text(yaml.safe_dump(content))
    with pytest.raises(ValueError, match="holds a study of one dataset, and this is a study of several datasets"):
        study(spec, folder, show_progress=False)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": {}}, "unknown key 'method'.*methods"),
        ({"methods": {}, "ablations": {}}, "methods: there is none"),
        ({"reference": "Leaprec"}, "reference 'Leaprec'.*LeapRec"),
        ({"methods": {"A": {"variant": "CD", "reranker": "leaprek"}}}, "leaprek.*leaprec"),
        ({"methods": {"A": {"variant": "CDD", "reranker": "leaprec"}}}, "variant 'CDD'.*CD"),
        ({"methods": {"A": {"variant": "CD", "reranker": "leaprec", "lambdas": [2]}}}, r"\[0, 1\], got 2"),
        ({"methods": {"A": {"varient": "CD"}}}, "unknown key 'varient'.*variant"),
        ({"settings": {"epoch": 3}}, "'epoch'.*epochs"),
        ({"backbones": ["SASRek"]}, "SASRek"),
        ({"backbones": [], "variants": {"CD": {}, "BPR": {}, "DACSR": {}}}, "nothing to train"),
        ({"backbones": []}, "variants: BPR has nothing to train"),
        (
            {"variants": {"CD": {"alpha": 0.5}, "BPR": {}, "DACSR": {}}},
            r"alpha must be the same for all, got 0\.9 \(SASRec-BPR-1\) and 0\.5 \(SASRec-CD-1\)",
        ),
        (
            {"variants": {"CD": {"topk": [5, 20]}, "BPR": {}, "DACSR": {}}},
            "the largest topk must be the same for all, got 5 .* and 20",
        ),
        ({"ablations": {"LeapRec": {"variant": "CD", "reranker": "leaprec"}}}, "'LeapRec' is among the methods and"),
        ({"match": 0.5}, "match must be a list of numbers, got 0.5"),
        ({"match": ["a"]}, "match must be a list of numbers, each once"),
        ({"seeds": 2020}, "seeds must be a list of whole numbers, got 2020"),
        ({"seeds": [1, 1]}, "seeds must be a list of whole numbers, each once"),
        ({"backbones": "SASRec"}, "backbones must be a list of models, got 'SASRec'"),
        ({"settings": [1]}, "settings must be `name: value` lines"),
        ({"variants": {"BPR": 3}}, "variants: BPR must be settings"),
        ({"variants": {1: {}}}, "variants: the name 1 is no text; write it in quotes"),
        (
            {"methods": {"A": {"variant": "CD", "reranker": ["leaprec"]}}},
            "A: reranker must be one name, got \\['leaprec'\\]",
        ),
        ({"settings": {"model": "GRU4RecCD"}}, "settings: model is not for a study to set"),
        ({"variants": {"CD": {"seed": 3}, "BPR": None, "DACSR": None}}, "CD: seed is not for a study to set"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_before_anything_is_written(tmp_path, toy, change, message, capsys):
    spec = spec_file(tmp_path, toy, **change)
    assert main(["study", f"--spec={spec}", f"--output_dir={tmp_path / 'out'}"]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert not (tmp_path / "out").exists()


def test_the_studies_that_come_with_the_plugin_are_sound():
    for path in Path("properties/study").glob("*.yaml"):
        spec = Spec.read(path)
        assert spec.reference == "LeapRec"
        assert {"BPR", "BPR + CD-BPR"} <= {part.variant for part in spec.parts()}


@pytest.mark.slow
def test_backbones_have_their_names_before_their_methods_and_their_own_comparisons(tmp_path, toy):
    variants = {"BPR": {"gamma": 0}, "DACSR": {"model": "DACSR"}}
    methods = {name: {"variant": "BPR", "reranker": name} for name in ("leaprec", "calirec")} | {
        "DACSR": {"variant": "DACSR"}
    }
    given = {"backbones": ["SASRec", "GRU4Rec"], "seeds": [1], "variants": variants, "methods": methods, "ablations": {}}
    study(spec_file(tmp_path, toy, **given, reference="leaprec", match=[5.0]), tmp_path / "out", show_progress=False)
    table = pd.read_csv(tmp_path / "out" / "comparison.csv")
    pairs = set(zip(table["method"], table["reference"], strict=True))
    embedded = re.search(r'id="data">(.*?)</script>', (tmp_path / "out" / "report.html").read_text(), flags=re.DOTALL)[1]
    assert json.loads(embedded)["references"] == [
        {"name": f"{backbone} leaprec", "methods": ["DACSR", f"{backbone} calirec"]} for backbone in ("SASRec", "GRU4Rec")
    ]
    own = {(f"{backbone} calirec", f"{backbone} leaprec") for backbone in ("SASRec", "GRU4Rec")}
    assert pairs == own | {("DACSR", f"{backbone} leaprec") for backbone in ("SASRec", "GRU4Rec")}
    assert table["p_holm"].tolist() == pytest.approx(holm(table["p"].to_numpy()).tolist())  # one family, not one a backbone
    study(spec_file(tmp_path, toy, **given, reference="DACSR", match=[5.0]), tmp_path / "out", show_progress=False)
    table = pd.read_csv(tmp_path / "out" / "comparison.csv")
    assert set(table["method"]) == {f"{b} {m}" for b in ("SASRec", "GRU4Rec") for m in ("leaprec", "calirec")}


def test_equal_curves_do_not_differ(finished_study):
    folder, _ = finished_study
    measured = Measurement.load(folder / "SASRec-CD-1" / FILE)
    curves = [Curve(name, "leaprec", [measured]) for name in ("a", "b")]
    assert curve_table(curves, samples=10)["method"].tolist() == ["a"] * 4 + ["b"] * 4
    compared = compare(Comparison(curves[0], curves), [1.0])
    assert compared["difference"].abs().max() == 0
    assert compared["p"].tolist() == [1.0, 1.0]
    assert compared["seeds"].tolist() == [1, 1]
    assert compared["p_seeds"].isna().all()


@pytest.mark.slow
def test_a_variant_that_comes_back_changed_is_not_taken_for_the_trained_one(tmp_path, toy):
    """What counts is what the model was trained with, not what the file said last."""
    other = {"CD": {}, "Other": {"gamma": 0.5}}
    small = {"seeds": [1], "ablations": {}, "reference": "A"}
    out = tmp_path / "out"

    def asked(name, variants):
        methods = {"A": {"variant": name, "reranker": "leaprec"}}
        return spec_file(tmp_path, toy, **small, variants=variants, methods=methods)

    study(asked("Other", other), out, show_progress=False)
    study(asked("CD", {"CD": {}}), out, show_progress=False)
    study(asked("Other", other), out, show_progress=False)
    with pytest.raises(ValueError, match=r"SASRec-Other-1, trained with gamma: 0.5 and not 0.1"):
        study(asked("Other", {"Other": {}}), out, show_progress=False)
