"""The report's page, in a browser, as a reader uses it."""

import copy
import itertools
import json
import math
import re
import shutil

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from recbole_leaprec.page.html import page
from recbole_leaprec.page.script import script
from tests.browser import installed, messages, requests
from tests.report_data import BACKBONES, CATEGORIES, K, report_data, two_backbones

DATA = report_data()
SECTIONS = ["summary", "tradeoff", "ablation", "comparison", "times", "density", "shift", "users"]
METRICS = ["hit", "ndcg", "skl", "ckl"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all tests: the browser keeps what it compiled of Plotly for the same address, which is most of the time."""
    return tmp_path_factory.mktemp("report")


@pytest.fixture
def show(open_page, folder):
    """A report of some figures, opened."""

    def make(data=DATA, **how):
        path = folder / "report.html"
        path.write_text(page(data), encoding="utf-8")
        return open_page(path, **how)

    return make


def find(driver, selector):
    return driver.find_element(By.CSS_SELECTOR, selector)


def find_all(driver, selector):
    return driver.find_elements(By.CSS_SELECTOR, selector)


def choose(driver, selector, value):
    Select(find(driver, selector)).select_by_value(value)


def texts(driver, selector):
    """The text of all that match, hidden or not, in one call."""
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(node => node.textContent)", selector
    )


def shown_items(driver, holder="#user-list"):
    script = "return [...document.querySelectorAll(arguments[0])].map(row => row.dataset.item)"
    return driver.execute_script(script, f"{holder} [data-item]")


def summary_rows(driver):
    """`{(method, lambda): {metric: text}}` of the summary as it stands."""
    script = """return [...document.querySelectorAll("#summary tbody tr")].map(row => [row.dataset.method, row.dataset.lambda,
        Object.fromEntries([...row.querySelectorAll("[data-metric]")].map(cell => [cell.dataset.metric, cell.textContent]))])"""
    return {(method, lam): cells for method, lam, cells in driver.execute_script(script)}


# What is in the file


def test_the_page_needs_a_title_and_methods():
    with pytest.raises(ValueError, match="methods"):
        page({"title": "x"})


def test_the_data_comes_back_from_the_page_with_nan_as_null():
    data = {
        "title": "x",
        "methods": [],
        "shift": {"window": np.int64(20), "points": [math.nan, np.float32("inf"), np.arange(2)]},
    }
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', page(data), flags=re.DOTALL)[1]
    assert json.loads(embedded)["shift"] == {"window": 20, "points": [None, None, [0, 1]]}


def test_without_a_browser_the_tests_fail_and_say_how_to_get_one(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(pytest.fail.Exception, match="apt-get install chromium chromium-driver"):
        installed("chromium")


# The page as a whole


def test_nothing_is_said_on_the_console_and_nothing_is_asked_of_the_network(show):
    driver = show()
    use_everything = """
        for (const select of document.querySelectorAll("select"))
            for (const option of [...select.options]) {
                select.value = option.value; select.dispatchEvent(new Event("change")); }
        for (const input of document.querySelectorAll("input[type=range]"))
            for (let at = 0; at <= Number(input.max); at++) { input.value = at; input.dispatchEvent(new Event("input")); }
        for (const box of document.querySelectorAll("input[type=checkbox]")) box.click();
        for (const button of document.querySelectorAll("main button, #theme")) { button.click(); button.click(); }
        for (const plot of document.querySelectorAll(".plot")) Plotly.Fx.hover(plot, [{curveNumber: 0, pointNumber: 1}]);"""
    driver.execute_script(use_everything)
    driver.execute_async_script("setTimeout(arguments[0], 300)")  # hover labels come late
    assert find_all(driver, ".hoverlayer .hovertext")
    assert messages(driver) == []
    asked = requests(driver)
    assert asked[0].startswith("file:")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1


def test_no_button_of_a_plot_sends_figures_away(show):
    driver = show()
    names = driver.execute_script(
        "return [...document.querySelectorAll('.modebar-btn')].map(button => button.dataset.title)"
    )
    assert {name.split()[0] for name in names} == {"Download", "Zoom", "Reset"}


def test_all_sections_stand_in_order_with_a_menu(show):
    driver = show()
    assert [section.get_attribute("id") for section in find_all(driver, "main > section")] == SECTIONS
    assert [link.get_attribute("hash") for link in find_all(driver, "#menu a")] == [f"#{name}" for name in SECTIONS]


@pytest.mark.parametrize(
    ("without", "gone"),
    [(["comparisons", "times", "shift"], ["comparison", "times", "shift"]), (["density", "explorer"], ["density", "users"])],
)
def test_a_section_without_figures_is_left_out(show, without, gone):
    driver = show({key: value for key, value in DATA.items() if key not in without})
    left = [name for name in SECTIONS if name not in gone]
    assert [section.get_attribute("id") for section in find_all(driver, "main > section")] == left
    assert [link.get_attribute("hash") for link in find_all(driver, "#menu a")] == [f"#{name}" for name in left]
    assert messages(driver) == []


def test_the_least_that_there_is_makes_a_page(show):
    driver = show({"title": "Nothing yet", "methods": [], "comparisons": [], "explorer": {"methods": [], "users": []}})
    assert find(driver, "h1").text == "Nothing yet"
    assert find_all(driver, "main > section") == []
    assert messages(driver) == []


def test_a_method_with_one_point_and_no_lambda_interval_or_base_is_shown(show):
    method = {
        "name": "DACSR",
        "group": "method",
        "model": "DACSR",
        "points": [{"lambda": None, "ndcg": 0.05, "hit": 0.1, "skl": 0.8}],
    }
    driver = show({"title": "One", "methods": [method]})
    assert summary_rows(driver)["DACSR", ""]["ndcg"] == "0.0500"
    assert messages(driver) == []


def test_names_are_shown_as_text_whatever_they_hold(show):
    trap = "</script><script>window.trapped = 1</script><img src=x onerror='window.trapped = 1'>"
    data = copy.deepcopy(DATA)
    data["title"] = f"title {trap}"
    data["dataset"]["categories"][0] = f"category {trap}"
    data["methods"][1]["name"] = f"method {trap}"
    data["explorer"]["users"][0]["user"] = f"user {trap}"
    item = str(data["explorer"]["users"][0]["lists"]["LeapRec"][3][0])
    data["items"][item]["name"] = f"item {trap}"
    driver = show(data)
    driver.execute_script("Plotly.Fx.hover('tradeoff-ndcg', [{curveNumber: 1, pointNumber: 1}])")
    assert find(driver, "h1").text == f"title {trap}"
    assert find(driver, f"#user-list [data-item='{item}'] .name").text.startswith(f"item {trap}")
    assert f"method {trap}" in find(driver, "#summary").text
    assert f"category {trap}" in texts(driver, "#user-mix [role=rowheader]")
    assert trap in find(driver, "#user-list-title").text
    assert driver.execute_script("return window.trapped === undefined && document.images.length === 0")
    assert messages(driver) == []


# Figures


def test_the_headline_compares_the_reference_with_its_own_base(show):
    point, base = next(p for p in DATA["methods"][0]["points"] if p["lambda"] == 0.3), DATA["methods"][0]["base"]
    driver = show()
    assert find(driver, "#lead p").text == (
        f"LeapRec at lambda 0.3: S_KL@10 {point['skl']:.4f} against {base['skl']:.4f} for the model's own ranking, "
        f"nDCG@10 {point['ndcg']:.4f} against {base['ndcg']:.4f}."
    )
    rows = [row for row in DATA["comparisons"] if (row["skl"], row["metric"], row["group"]) == (0.3, "ndcg", "method")]
    clear = sum(row["p_holm"] < 0.05 and row["value"] < row["reference_value"] for row in rows)
    assert 0 < clear < len(rows)
    assert f"higher than that of 3 of 3 other methods, significantly so for {clear} " in find(driver, "#lead").text
    assert find(driver, "#facts").text == "ml-100k · 942 users · 1,447 items · 55,375 interactions · 8 categories"


def test_the_summary_has_the_numbers_of_the_data(show):
    driver = show()
    for lam in ("0", "0.3", "1"):
        choose(driver, "#summary-choice", f"lambda:{lam}")
        rows = summary_rows(driver)
        for method in DATA["methods"]:
            point = next(point for point in method["points"] if point["lambda"] == float(lam))
            cells = rows[method["name"], lam]
            assert {metric: cells[metric] for metric in METRICS} == {metric: f"{point[metric]:.4f}" for metric in METRICS}
            base = rows[method["model"], "base"]
            assert {metric: base[metric] for metric in METRICS} == {
                metric: f"{method['base'][metric]:.4f}" for metric in METRICS
            }
    change = DATA["methods"][0]["points"][-1]["ndcg"] / DATA["methods"][0]["base"]["ndcg"] - 1
    assert rows["LeapRec", "1"]["ndcg_change"] == f"{100 * change:+.1f} %".replace("-", "−")  # noqa: RUF001


def test_the_summary_shows_each_method_at_its_smallest_lambda_below_a_bound(show):
    driver = show()
    choose(driver, "#summary-choice", "skl:0.1")
    expected = {}
    for method in DATA["methods"]:
        reached = [point["lambda"] for point in method["points"] if point["skl"] <= 0.1]
        expected[method["name"]] = f"{min(reached):g}" if reached else ""
    assert "" in expected.values()
    assert {name: lam for name, lam in summary_rows(driver) if lam != "base"} == expected


def test_a_header_sorts_its_column_by_keyboard(show):
    driver = show()
    header = next(th for th in find_all(driver, "#summary thead th") if th.text.startswith("nDCG@10"))

    def column():
        return [float(text) for text in texts(driver, "#summary [data-metric=ndcg]")]

    unsorted = column()
    find(header, "button").send_keys(Keys.ENTER)
    assert column() == sorted(unsorted, reverse=True) != unsorted
    assert header.get_attribute("aria-sort") == "descending"
    find(header, "button").send_keys(Keys.SPACE)
    assert column() == sorted(unsorted)


def test_curves_have_the_points_of_their_group(show):
    driver = show()
    for section, names in (
        ("tradeoff", ["LeapRec", "CaliRec", "CaliRec+", "MCF"]),
        ("ablation", ["LeapRec", "only BPR", "PR-reverse"]),
    ):
        for metric in ("ndcg", "hit"):
            traces = driver.execute_script(
                f"return document.getElementById('{section}-{metric}').data.map(({{name, x, y}}) => ({{name, x, y}}))"
            )
            curves = {trace["name"]: list(zip(trace["x"], trace["y"], strict=True)) for trace in traces[: len(names)]}
            methods = {method["name"]: method for method in DATA["methods"]}
            assert curves == {name: [(point["skl"], point[metric]) for point in methods[name]["points"]] for name in names}
            bases = {(methods[name]["base"]["skl"], methods[name]["base"][metric]) for name in names}
            assert {(trace["x"][0], trace["y"][0]) for trace in traces[len(names) :]} == bases
    looks = driver.execute_script(
        "return document.getElementById('tradeoff-ndcg').data.slice(0, 4).map(t => t.marker.symbol + t.line.dash)"
    )
    assert len(set(looks)) == 4


def test_a_curve_can_be_hidden_and_intervals_drawn_by_keyboard(show):
    driver = show()
    boxes = find_all(driver, "#tradeoff .legend input")
    boxes[1].send_keys(Keys.SPACE)
    boxes[-1].send_keys(Keys.SPACE)
    for metric in ("ndcg", "hit"):
        state = driver.execute_script(
            f"return document.getElementById('tradeoff-{metric}').data.map(t => [t.visible, t.error_y?.visible])"
        )
        assert state[:4] == [[True, True], [False, True], [True, True], [True, True]]


def test_a_comparison_says_in_words_what_is_significant(show):
    driver = show()
    choose(driver, "#comparison-metric", "")
    rows = find_all(driver, "#comparison tbody tr")
    assert len(rows) == len(DATA["comparisons"])
    said = set()
    for row, entry in zip(rows, DATA["comparisons"], strict=True):
        *_, difference, p, p_holm, verdict = texts_of(driver, row)
        assert difference == f"{100 * (entry['value'] / entry['reference_value'] - 1):+.1f} %".replace("-", "−")  # noqa: RUF001
        assert (p, p_holm) == tuple(f"{v:.4f}" if v >= 0.0001 else "< 0.0001" for v in (entry["p"], entry["p_holm"]))
        lower = entry["value"] < entry["reference_value"]
        words = "not significant" if entry["p_holm"] >= 0.05 else "significantly lower" if lower else "significantly higher"
        assert verdict[2:] == words
        said.add(words)
    assert len(said) > 1


def texts_of(driver, row):
    return driver.execute_script("return [...arguments[0].children].map(cell => cell.textContent)", row)


def test_with_one_reference_the_comparison_names_it_once(show):
    driver = show()
    heads = texts(driver, "#comparison thead th")
    assert heads == ["Method", "S_KL@10", "Metric", "Value", "LeapRec", "Difference", "p", "p, Holm", "Verdict"]
    assert find(driver, "#comparison-note").text.startswith("Every method against LeapRec, both at the same S_KL.")
    assert find(driver, "#ablation-note").text == "LeapRec with one part taken away or replaced at a time."
    assert texts(driver, "#summary tr.reference") == texts(driver, "#summary tr[data-method=LeapRec]")


def test_each_backbone_is_held_against_its_own_reference(show):
    data = two_backbones()
    driver = show(data)
    assert "higher than that of 1 of 2 other methods compared with it, significantly so for 1 " in find(driver, "#lead").text

    choose(driver, "#comparison-metric", "")
    assert texts(driver, "#comparison thead th")[:5] == ["Method", "Reference", "S_KL@10", "Metric", "Value"]
    rows = [texts_of(driver, row) for row in find_all(driver, "#comparison tbody tr")]
    expected = [(row["method"], row["reference"], f"{row['reference_value']:.4f}") for row in data["comparisons"]]
    assert [(row[0].removesuffix(" ablation"), row[1], row[5]) for row in rows] == expected
    around = [*texts(driver, "#comparison-note, #comparison caption"), *texts(driver, "#comparison thead th")]
    assert not [text for text in around if any(backbone in text for backbone in BACKBONES)]

    assert find(driver, "#ablation-note").text == " ".join(
        f"{own} LeapRec with one part taken away or replaced at a time: {own} only BPR." for own in BACKBONES
    )
    drawn = driver.execute_script("return document.getElementById('ablation-ndcg').data.map(t => [t.name, t.line?.width])")
    assert drawn[:4] == [[f"{own} {name}", width] for own in BACKBONES for name, width in (("LeapRec", 3), ("only BPR", 2))]
    for section in ("summary", "times"):
        marked = [row.get_attribute("data-method") for row in find_all(driver, f"#{section} tr.reference")]
        assert marked == [f"{own} LeapRec" for own in BACKBONES]
    assert messages(driver) == []


def test_an_ablation_whose_reference_is_not_done_yet_is_not_put_under_another(show):
    data = two_backbones()
    data["methods"] = [method for method in data["methods"] if method["name"] != "GRU4Rec LeapRec"]
    del data["references"][1]
    data["comparisons"] = [row for row in data["comparisons"] if row["reference"] == "SASRec LeapRec"]
    driver = show(data)
    assert find(driver, "#ablation-note").text == (
        "SASRec LeapRec with one part taken away or replaced at a time: SASRec only BPR. "
        "The reference of GRU4Rec only BPR is not measured yet."
    )
    assert messages(driver) == []


def test_times_are_there_and_what_was_not_measured_is_a_dash(show):
    rows = [texts_of(driver, row) for driver in [show()] for row in find_all(driver, "#times tbody tr")]
    assert rows[0] == ["LeapRec", "leaprec", "61.3", "0.42", "8", "1.0×", "O(n k m)", "O(n + k f m)"]  # noqa: RUF001
    assert rows[2][2:6] == ["–", "1,294", "1", "3,080×"]  # noqa: RUF001


def test_the_density_follows_its_slider_and_keeps_lambda_0_in_sight(show):
    driver = show()
    method = DATA["density"]["methods"][0]
    assert find(driver, "#density-skl").text == f"{method['skl'][3]:.4f}"
    find(driver, "#density-lambda").send_keys(Keys.ARROW_RIGHT)
    assert find(driver, "#density-skl").text == f"{method['skl'][4]:.4f}"
    assert find(driver, "#density-ndcg").text == f"{method['ndcg'][4]:.4f}"
    drawn = driver.execute_script("return document.getElementById('density-plot').data.map(trace => trace.y)")
    assert drawn == [method["curves"][0], method["curves"][4]]
    choose(driver, "#density-method", "MCF")
    assert find(driver, "#density-skl").text == f"{DATA['density']['methods'][3]['skl'][4]:.4f}"


def test_the_shift_is_by_where_the_second_window_starts(show):
    said = find(show(), "#shift-note").text
    assert "how many items later the second one starts; at 0 the two are the same, below 20 they overlap." in said


# One user


def test_the_slider_changes_the_list_and_its_s_kl_by_keyboard(show):
    driver = show()
    user = DATA["explorer"]["users"][1]
    choose(driver, "#user-select", "1")
    before = shown_items(driver)
    assert before == [str(item) for item in user["lists"]["LeapRec"][3]]
    for key, index in ((Keys.ARROW_RIGHT, 4), (Keys.ARROW_LEFT * 2, 2), (Keys.HOME, 0), (Keys.END, 7)):
        find(driver, "#user-lambda").send_keys(key)
        assert shown_items(driver) == [str(item) for item in user["lists"]["LeapRec"][index]] != before
        assert find(driver, "#user-skl").text == f"{user['skl']['LeapRec'][index]:.4f}"
        said = find(driver, "#user-lambda").get_attribute("aria-valuetext")
        assert said == f"lambda {DATA['explorer']['methods'][0]['lambdas'][index]:g}"


def test_another_method_keeps_the_nearest_lambda(show):
    data = copy.deepcopy(DATA)
    data["explorer"]["methods"][1]["lambdas"] = [0.0, 0.05, 0.28, 0.5, 0.6, 0.7, 0.9, 1.0]
    driver = show(data)
    choose(driver, "#user-method", "CaliRec")
    assert find(driver, "#user-value").text == "lambda 0.28"
    assert shown_items(driver) == [str(item) for item in data["explorer"]["users"][0]["lists"]["CaliRec"][2]]


ROWS = """return [...document.querySelectorAll("#user-list li")].map(row =>
    [row.dataset.item, row.dataset.move, row.querySelector(".move").textContent, row.textContent])"""


def test_the_true_next_item_and_every_move_are_said(show):
    driver = show()
    kinds = set()
    for at, user in enumerate(DATA["explorer"]["users"]):
        choose(driver, "#user-select", str(at))
        rank, target = user["rank"]["LeapRec"], str(user["target"])
        rows = driver.execute_script(ROWS)
        items = [item for item, *_ in rows]
        for place, (item, move, words, text) in enumerate(rows, start=1):
            own = rank[item]
            kind = "new" if own > K else "up" if own > place else "down" if own < place else "same"
            assert move == kind
            assert str(own) in words
            assert ("the true next item" in text) == (item == target)
            kinds.add(kind)
        place = f"place {items.index(target) + 1}" if target in items else "not in the list"
        assert find(driver, "#user-target-place").text == place
        gone = [str(item) for item in user["lists"]["LeapRec"][0] if str(item) not in items]
        assert shown_items(driver, "#user-gone") == gone
    assert kinds == {"new", "up", "down", "same"}


def category_mix(items):
    """The mean over items, each 1/n for each of its n categories, or equal for all when it has none."""
    rows = []
    for item in items:
        own = DATA["items"][str(item)]["categories"]
        rows.append([1 / len(own) if c in own else 0.0 if own else 1 / len(CATEGORIES) for c in range(len(CATEGORIES))])
    return np.mean(rows, axis=0) if rows else np.zeros(len(CATEGORIES))


def test_each_item_says_why_it_is_there(show):
    driver = show()
    kept = brought = 0
    for at, user in enumerate(DATA["explorer"]["users"]):
        choose(driver, "#user-select", str(at))
        items = user["lists"]["LeapRec"][3]
        for place, (item, said) in enumerate(zip(items, texts(driver, "#user-list .why"), strict=True)):
            above, own = category_mix(items[:place]), DATA["items"][str(item)]["categories"]
            short = {c: user["preference"][c] - above[c] for c in own if percent(user["preference"][c]) > percent(above[c])}
            if short:
                best = max(short, key=short.get)
                rest = f"{percent(above[best])} % of the list above" if place else "nothing above it yet"
                assert said == f"brings {CATEGORIES[best]}: {percent(user['preference'][best])} % of the recent mix, {rest}"
                brought += 1
            else:
                assert said == f"kept for relevance: place {user['rank']['LeapRec'][str(item)]} of the model's own ranking"
                kept += 1
    assert kept > 5
    assert brought > 5


def percent(value):
    return math.floor(100 * value + 0.5)


def test_at_lambda_0_relevance_alone_is_the_reason(show):
    driver = show()
    find(driver, "#user-lambda").send_keys(Keys.HOME)
    assert texts(driver, "#user-list .why") == [
        f"by relevance alone: place {rank} of the model's own ranking" for rank in range(1, 11)
    ]
    assert "all there" in find(driver, "#user-gone-none").text


def test_the_mix_of_the_list_stands_beside_the_recent_one(show):
    driver = show()
    for at, user in enumerate(DATA["explorer"]["users"]):
        choose(driver, "#user-select", str(at))
        mix = category_mix(user["lists"]["LeapRec"][3])
        bars = texts(driver, "#user-mix .value")
        names = texts(driver, "#user-mix [role=rowheader]")
        shares = {name: (bars[2 * i], bars[2 * i + 1]) for i, name in enumerate(names)}
        expected = {
            name: (f"{percent(user['preference'][c])} %", f"{percent(mix[c])} %")
            for c, name in enumerate(CATEGORIES)
            if name in shares
        }
        assert shares == expected
        assert sum(user["preference"][CATEGORIES.index(name)] for name in names) > 0.97


def test_users_are_found_by_typing_and_by_the_buttons(show):
    driver = show()
    find(driver, "#user-next").click()
    assert "user 22:" in find(driver, "#user-list-title").text
    find(driver, "#user-previous").click()
    assert "user 196:" in find(driver, "#user-list-title").text
    assert not find(driver, "#user-previous").is_enabled()
    find(driver, "#user-filter").send_keys("5")
    assert [text.split()[0] for text in texts(driver, "#user-select option")] == ["305", "115"]
    assert "user 305:" in find(driver, "#user-list-title").text
    find(driver, "#user-filter").send_keys("55")
    assert "No user" in find(driver, "#user-none").text
    assert not find(driver, "#user-view").is_displayed()
    find(driver, "#user-filter").send_keys(Keys.BACKSPACE * 3)
    assert len(texts(driver, "#user-select option")) == 6
    assert find(driver, "#user-view").is_displayed()
    assert messages(driver) == []


# How it looks, and for whom


@pytest.mark.parametrize("width", [320, 360])
def test_a_phone_does_not_scroll_sideways(show, width):
    driver = show(width=width, height=700)
    assert driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    outside = """return [...document.querySelectorAll("main *")].filter(node => !node.closest(".figure, svg, .modebar, caption, .legend legend")
        && node.getBoundingClientRect().right > innerWidth + 1).map(node => node.outerHTML.slice(0, 80))"""
    assert driver.execute_script(outside) == []
    assert driver.execute_script("return document.querySelector('#summary .figure').scrollWidth") > width


COLOURS = """const ink = (selector, what) => getComputedStyle(document.querySelector(selector))[what];
    return [ink("body", "backgroundColor"), ink("body", "color"), ink("#tradeoff-ndcg .xtick text", "fill"), ink("#tradeoff-ndcg .scatterlayer path.js-line", "stroke")]"""


def test_the_colours_follow_the_system_and_the_button_and_the_plots_with_them(show):
    light = show().execute_script(COLOURS)
    driver = show(scheme="dark")
    dark = driver.execute_script(COLOURS)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    find(driver, "#theme").click()
    assert driver.execute_script(COLOURS) == light
    find(driver, "#theme").click()
    assert driver.execute_script(COLOURS) == dark
    driver = show()
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert driver.execute_script(COLOURS) == dark  # while the page is open


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(show, scheme):
    contrast = """
        const rgb = text => text.match(/[\\d.]+/g).map(Number);
        const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const ground = node => { for (; node; node = node.parentElement) { const c = rgb(getComputedStyle(node).backgroundColor);
            if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
        const bad = new Set();
        for (const node of document.querySelectorAll("h1, h2, p, small, th, td, button:enabled, .chip, .why, .move b, .badge, .value, dt, label")) {
            if (getComputedStyle(node).backgroundColor.startsWith("color")) continue;
            const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < 4.5) bad.add(node.tagName + "." + node.className + " " + ratio.toFixed(2)); }
        return [...bad];"""
    assert show(scheme=scheme).execute_script(contrast) == []


def test_the_page_can_be_read_and_used_without_eyes_or_mouse(show):
    driver = show()
    unnamed = "return [...document.querySelectorAll('input, select')].filter(i => !i.labels.length || !i.labels[0].textContent.trim()).map(i => i.id)"
    assert driver.execute_script(unnamed) == []
    levels = driver.execute_script("return [...document.querySelectorAll('h1, h2, h3')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    ids = driver.execute_script(
        "return [...document.querySelectorAll('[id]')].filter(n => !n.closest('svg')).map(n => n.id)"
    )
    assert len(ids) == len(set(ids))
    assert find(driver, "#user-skl").find_element(By.XPATH, "ancestor::*[@aria-live]")
    find(driver, "body").send_keys(Keys.TAB)
    assert driver.switch_to.active_element.get_attribute("href").endswith("#main")
    assert driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_no_names_of_ours_are_left_in_the_window(show, open_page, tmp_path):
    ours = {*re.findall(r"(?:function|const|let) (\w+)", script())}
    names = "return Object.getOwnPropertyNames(window)"
    added = {*show().execute_script(names)}
    (tmp_path / "empty.html").write_text("<!doctype html><title>empty</title>")
    added -= {*open_page(tmp_path / "empty.html").execute_script(names)}
    assert "Plotly" in added
    assert added & ours == set()
