"""Reports out of real folders, looked at in a browser: what the page says is what the tables and the lists say."""

import re
import shutil

import pandas as pd
import pytest
import yaml
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from recbole_leaprec import run_leaprec
from recbole_leaprec.analysis.measurement import FILE, Measurement
from recbole_leaprec.cli import main
from tests.browser import messages
from tests.toy import SMALL
from tests.toy_study import spec_file

METRICS = ("hit", "ndcg", "skl", "ckl")


def cells(driver, method: str) -> list[dict[str, str]]:
    """The rows of a method in the summary: its lambda and figures, as shown."""
    script = """return [...document.querySelectorAll('#summary [data-method]')].filter(row => row.dataset.method === arguments[0])
        .map(row => Object.fromEntries([['lambda', row.dataset.lambda],
            ...[...row.querySelectorAll('[data-metric]')].map(cell => [cell.dataset.metric, cell.textContent.trim()])]))"""
    return driver.execute_script(script, method)


def test_the_figures_of_the_page_are_those_of_the_csv(finished_study, open_page):
    folder, _ = finished_study
    driver = open_page(folder / "report.html")
    table = pd.read_csv(folder / "tradeoff.csv")
    compared = 0
    for method in table["method"].unique():
        for row in cells(driver, method):
            at = table[table["method"] == method]
            own = row["lambda"] in ("", "base")
            shown = at[at["reranker"] == "none"] if own else at[at["lambda"].map("{:g}".format) == row["lambda"]]
            expected = [{metric: f"{entry[f'{metric}@5']:.4f}" for metric in METRICS} for _, entry in shown.iterrows()]
            found = {metric: match[0] for metric in METRICS if (match := re.match(r"[\d.]+", row[metric]))}
            if found:  # a method that no lambda brings to the S_KL asked for has none
                assert found in expected
                compared += 1
    assert compared + 1 >= table["method"].nunique()
    assert messages(driver) == []


def test_the_slider_shows_the_lists_and_the_s_kl_that_were_measured(finished_study, open_page):
    folder, _ = finished_study
    driver = open_page(folder / "report.html")
    measured = Measurement.load(folder / "SASRec-CD-1" / FILE)
    Select(driver.find_element(By.ID, "user-method")).select_by_value("LeapRec")
    slider, seen = driver.find_element(By.ID, "user-lambda"), set()
    slider.send_keys(Keys.HOME)
    user = driver.execute_script(
        "const data = JSON.parse(document.querySelector('script[type=\"application/json\"]').textContent);"
        "return data.explorer.users[document.getElementById('user-select').selectedIndex].user"
    )
    number = measured.users.tolist().index(user)
    for lam in (0.0, 0.5, 0.9):
        place = measured.place["leaprec", lam]
        items = driver.execute_script(
            "return [...document.querySelectorAll('#user-list [data-item]')].map(row => Number(row.dataset.item))"
        )
        assert items == measured.lists[place, number].tolist()
        assert driver.find_element(By.ID, "user-skl").text == f"{measured.metric('skl')[place, number]:.4f}"
        seen.add((tuple(items), driver.find_element(By.ID, "user-skl").text))
        slider.send_keys(Keys.ARROW_RIGHT)
    assert len(seen) > 1
    assert messages(driver) == []


@pytest.fixture
def runs(toy, tmp_path):
    """Folders of two runs on the same data."""
    folders = []
    for gamma in (0, 0.1):
        settings = {**SMALL, "data_path": str(toy), "gamma": gamma, "output_dir": str(tmp_path / f"gamma-{gamma}")}
        folders.append(run_leaprec("SASRecCD", "toy", config_dict=settings)["folder"])
    return folders


def test_a_report_of_runs_measures_them_and_names_their_curves(runs, tmp_path, open_page, capsys):
    out = tmp_path / "pages" / "report.html"
    asked = ["--rerankers=leaprec,calirec", "--lambdas=0,0.5,1", "--users=7"]
    assert main(["report", *runs, f"--out={out}", *asked]) == 0
    assert str(out) in capsys.readouterr().out
    table = pd.read_csv(out.parent / "tradeoff.csv")
    names = [f"gamma-{gamma}: {reranker}" for gamma in (0, 0.1) for reranker in ("leaprec", "calirec")]
    assert table["method"].unique().tolist() == names
    driver = open_page(out)
    assert driver.find_element(By.TAG_NAME, "h1").text == "Calibrated lists on toy"
    assert all(cells(driver, name) for name in names)
    assert driver.execute_script("return document.querySelectorAll('#user-select option').length") == 7
    assert messages(driver) == []
    assert main(["report", *runs, f"--out={out}", *asked]) == 2
    assert "is there already" in capsys.readouterr().err


def test_a_report_of_a_tradeoff_uses_what_was_measured(runs, tmp_path, capsys):
    folder = tmp_path / "tradeoff"
    checkpoint = f"{runs[0]}/model.pth"
    assert main(["tradeoff", f"--checkpoint={checkpoint}", "--lambdas=0,1", f"--output_dir={folder}", "--samples=20"]) == 0
    assert main(["report", str(folder), f"--out={tmp_path / 'page.html'}"]) == 0
    before, after = pd.read_csv(folder / "tradeoff.csv"), pd.read_csv(tmp_path / "tradeoff.csv")
    merged = before.merge(after[after["reranker"] != "none"], on=["reranker", "lambda"])
    assert len(merged) == 6
    assert merged["ndcg@10_x"].tolist() == pytest.approx(merged["ndcg@10_y"].tolist())


@pytest.mark.slow
def test_a_report_that_was_killed_goes_on_with_the_same_command(runs, tmp_path, monkeypatch, capsys):
    """Issue 21, 5: it refused, because of the csv files that it had left itself."""
    words = ["report", runs[0], f"--out={tmp_path / 'page' / 'report.html'}", "--lambdas=0,1", "--rerankers=leaprec"]

    def killed(*arguments):
        raise SystemExit(137)

    with monkeypatch.context() as patch:
        patch.setattr("recbole_leaprec.page.write._draw", killed)
        with pytest.raises(SystemExit):
            main(words)
    assert (tmp_path / "page" / "tradeoff.csv").is_file()
    (tmp_path / "page" / "report.html.part").write_text("half of a page")
    assert main(words) == 0
    left = {path.name for path in (tmp_path / "page").iterdir()}
    assert "report.html" in left
    assert not {".report-unfinished", "report.html.part"} & left
    (tmp_path / "page" / "report.html").unlink()
    assert main(words) == 2  # the files of a report that is done are not written over
    assert "holds a tradeoff.csv already" in capsys.readouterr().err


def test_a_run_and_its_own_tradeoff_do_not_count_twice(runs, tmp_path, capsys):
    """Issue 21, from the newcomer's list."""
    words = [f"--checkpoint={runs[0]}/model.pth", "--lambdas=0,1", "--rerankers=leaprec", "--samples=20"]
    assert main(["tradeoff", *words, f"--output_dir={tmp_path / 'tradeoff'}"]) == 0
    out = f"--out={tmp_path / 'page' / 'report.html'}"
    assert main(["report", runs[0], str(tmp_path / "tradeoff"), out, "--lambdas=0,1", "--rerankers=leaprec"]) == 2
    assert "are both leaprec of" in capsys.readouterr().err
    assert not (tmp_path / "page").exists()  # said before the users of the run are scored


def test_a_run_without_a_reranker_is_refused_before_it_is_measured(runs, tmp_path, capsys):
    assert main(["report", runs[0], f"--out={tmp_path / 'page' / 'report.html'}", "--rerankers=none"]) == 2
    assert "gamma-0 has no reranker but none, the model's own ranking, and so no curve" in capsys.readouterr().err
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name at least one folder"),
        (["nowhere"], "nowhere does not exist; name the folder of a run"),
        (["tests"], "holds neither a model.pth nor a measured.npz"),
        (["nowhere", "--users=0"], "users must be a whole number, 1 or more, got 0"),
        (["nowhere", "--rerankers=leaprek"], "unknown reranker 'leaprek'"),
        (["nowhere", "--epochs=3"], "unknown option or key 'epochs'"),
    ],
)
def test_what_cannot_be_reported_is_named(tmp_path, arguments, message, capsys):
    assert main(["report", *arguments, f"--out={tmp_path / 'page' / 'report.html'}"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "page").exists()


def test_an_unfinished_study_is_reported_as_far_as_it_is(finished_study, toy, tmp_path, capsys):
    folder, _ = finished_study
    part = tmp_path / "study"
    part.mkdir()
    (part / "study.yaml").write_text(spec_file(tmp_path, toy).read_text())
    assert main(["report", str(part), f"--out={tmp_path / 'page' / 'report.html'}"]) == 2
    assert "no part of this study is done yet" in capsys.readouterr().err
    shutil.copytree(folder / "SASRec-BPR-1", part / "SASRec-BPR-1")  # and a method that was added afterwards
    spec = yaml.safe_load((part / "study.yaml").read_text())
    spec["methods"]["new"] = {"variant": "BPR", "reranker": "setwise"}
    (part / "study.yaml").write_text(yaml.safe_dump(spec))
    assert main(["report", str(part), f"--out={tmp_path / 'page' / 'report.html'}"]) == 0
    assert pd.read_csv(tmp_path / "page" / "tradeoff.csv")["method"].unique().tolist() == ["CaliRec", "(-)CD"]


@pytest.mark.slow
def test_folders_of_the_same_name_are_told_apart(runs, tmp_path):
    folders = []
    for number, run in enumerate(runs):
        folders.append(tmp_path / f"{number}" / "run")
        shutil.copytree(run, folders[-1])
    out = tmp_path / "page" / "report.html"
    assert main(["report", *map(str, folders), "--out", str(out), "--rerankers=leaprec", "--lambdas=0.5"]) == 0
    table = pd.read_csv(out.parent / "tradeoff.csv")
    assert table["method"].unique().tolist() == ["0/run: leaprec", "1/run: leaprec"]
    assert len(table) == 4
    assert {path.name for path in out.parent.glob("measured-*")} == {"measured-0-run", "measured-1-run"}


@pytest.mark.slow
def test_runs_that_cannot_be_compared_are_refused(runs, toy, tmp_path, capsys):
    for number, (run, alpha) in enumerate(zip(runs, (0.9, 0.5), strict=True)):
        arguments = [f"--checkpoint={run}/model.pth", "--lambdas=0.5", f"--alpha={alpha}", "--samples=5"]
        assert main(["tradeoff", *arguments, f"--output_dir={tmp_path / str(number)}"]) == 0
    out = tmp_path / "page" / "report.html"
    assert main(["report", str(tmp_path / "0"), str(tmp_path / "1"), f"--out={out}"]) == 2
    assert "cannot be compared: other alpha" in capsys.readouterr().err
    assert not out.exists()
    assert main(["report", str(tmp_path / "0"), f"--out={out}", "--lambdas=0.1"]) == 2
    assert "has been measured: lambdas can change nothing" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "0"), f"--out={tmp_path / 'page'}"]) == 2
    assert "the page's name must end in .html" in capsys.readouterr().err
    settings = {**SMALL, "data_path": str(toy), "alpha": 0.5, "output_dir": str(tmp_path / "other")}
    run_leaprec("SASRecCD", "toy", config_dict=settings)
    assert main(["report", runs[0], str(tmp_path / "other"), f"--out={out}"]) == 2
    assert "alpha must be the same for all" in capsys.readouterr().err
    assert main(["report", runs[0], str(tmp_path / "1"), f"--out={out}"]) == 2
    assert "alpha must be the same for all, got 0.5" in capsys.readouterr().err
    assert not out.parent.exists()  # said before anything is measured
    assert main(["report", str(tmp_path / "0"), str(tmp_path / "0"), f"--out={out}"]) == 2
    assert "named twice" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "0"), f"--out={tmp_path / '0' / 'report.html'}"]) == 2
    assert f"out: {tmp_path / '0'} holds a tradeoff.csv already; name another folder" in capsys.readouterr().err
