"""From atomic files to sequences and rows."""

import logging
import re
import shlex

import pytest
import torch
from recbole.data.dataset import SequentialDataset

from recbole_leaprec.cli import main
from recbole_leaprec.config import LeapRecConfig
from recbole_leaprec.data import HISTORY_END, create_dataset
from tests import reference
from tests.toy import SMALL, stock_recbole, write_dataset


def load(folder, **changes):
    return create_dataset(LeapRecConfig("SASRecCD", "toy", config_dict={**SMALL, "data_path": str(folder), **changes}))


def tokens_of(dataset):
    """Each user's sequence, in the file's own names."""
    dataset.build()
    sequences = {}
    for user in range(1, dataset.user_num):
        begin, end = dataset.sequences.offsets[user : user + 2]
        names = dataset.id2token("item_id", dataset.sequences.items[begin:end])
        sequences[str(dataset.id2token("user_id", user))] = names.tolist()
    return sequences


def test_sequences_follow_epoch_seconds_that_float32_cannot_tell_apart(tmp_path):
    base = 881_250_900  # a step of float32 is 64 s here
    inter = [("u", item, base + second) for item, second in (("d", 3), ("a", 0), ("c", 2), ("b", 1))]
    folder = write_dataset(tmp_path, inter, dict.fromkeys("abcd", "Drama"))
    assert torch.tensor([float(base), base + 3.0]).unique().numel() == 1
    assert tokens_of(load(folder)) == {"u": ["a", "b", "c", "d"]}


@pytest.mark.parametrize("rm_dup_inter", [None, "first"])
def test_ties_of_time_keep_the_order_of_the_file(tmp_path, rm_dup_inter):
    names = [f"i{(17 * n) % 101}" for n in range(101)]
    folder = write_dataset(tmp_path, [("u", name, 5) for name in names], dict.fromkeys(sorted(names), "Drama"))
    assert tokens_of(load(folder, rm_dup_inter=rm_dup_inter)) == {"u": names}


@stock_recbole
def test_splits_leave_one_out_and_rows_are_those_of_recbole(toy, make_config):
    config = make_config()
    train, valid, test = create_dataset(config).build()

    class Stock(SequentialDataset):
        """RecBole's own, its float32 times replaced by their rank, so that both see the same order."""

        def _change_feat_format(self):
            ordered = self.inter_feat.sort_values([self.uid_field, self.time_field], kind="stable").reset_index(drop=True)
            ordered[self.time_field] = ordered.index.astype(float)
            self.inter_feat = ordered
            super()._change_feat_format()

    config["load_col"] = {"inter": ["user_id", "item_id", "timestamp"]}  # it cannot load categories on pandas 3
    stock_splits = Stock(config).build()
    rows, stock = [set(each(split)) for split in (train, valid, test)], [set(each(split)) for split in stock_splits]
    # RecBole keeps the last but one of a user with three interactions for training; here it is for validation.
    of_three = stock[0] & rows[1]
    assert of_three
    assert rows == [stock[0] - of_three, stock[1] | of_three, stock[2]]
    assert {row[0] for row in rows[1]} == set(range(1, train.user_num))


def each(split):
    """`(user, target, length, items...)` of every row, padding left out."""
    for n in range(len(split)):
        row = split[torch.tensor([n])]
        length = int(row["item_length"])
        items = row["item_id_list"].flatten().tolist()
        assert not any(items[length:])
        yield (int(row["user_id"]), int(row["item_id"]), length, *items[:length])


def test_the_preference_of_a_row_is_that_of_everything_before_its_target(prepare):
    _, dataset, (_, _, test) = prepare()
    row = test._dataset[torch.arange(len(test._dataset))]
    p = dataset.sequences.preference(row[HISTORY_END], dataset.categories, alpha=0.9)
    for n, end in enumerate(row[HISTORY_END].tolist()):
        begin = int(dataset.sequences.offsets[row["user_id"][n]])
        history = reference.rows(dataset.categories)[dataset.sequences.items[begin : end + 1]]
        weights = 0.9 ** torch.arange(len(history) - 1, -1, -1).double()
        torch.testing.assert_close(p[n], (weights @ history / weights.sum()).float())


def test_categories_come_from_the_item_file(tmp_path):
    items = {"a": "Drama Comedy", "b": "", "c": "Drama", "d": "Comedy Drama"}
    dataset = load(write_dataset(tmp_path, [("u", item, t) for t, item in enumerate("abcd")], items))
    dataset.build()
    by_token = dict(zip(dataset.id2token("item_id", range(5)), reference.rows(dataset.categories).tolist(), strict=True))
    assert sorted(dataset.categories.names) == ["Comedy", "Drama"]
    assert by_token["a"] == by_token["b"] == by_token["d"] == [0.5, 0.5]
    assert sorted(by_token["c"]) == [0, 1]
    assert dataset.categories.uncategorised == 1


def test_single_token_categories_and_items_without_interactions_work(tmp_path):
    folder = write_dataset(tmp_path, [("u", item, t) for t, item in enumerate("abcd")], dict.fromkeys("abcdxyz", "Drama"))
    file = folder / "toy" / "toy.item"
    file.write_text(file.read_text().replace("genre:token_seq", "genre:token"))
    dataset = load(folder)
    dataset.build()
    assert dataset.item_num == 8
    assert dataset.categories.names == ["Drama"]


def test_short_users_are_dropped_and_counted(tmp_path, caplog):
    inter = [("long", item, t) for t, item in enumerate("abcd")] + [("s1", "a", 1), ("s2", "a", 1), ("s2", "b", 2)]
    folder = write_dataset(tmp_path, inter, dict.fromkeys("abcd", "Drama"))
    with caplog.at_level(logging.WARNING):
        assert list(tokens_of(load(folder))) == ["long"]
    assert "dropped 2 users with fewer than 3 interactions" in caplog.text


def test_uncategorised_items_are_counted(tmp_path, caplog):
    items = {"a": "Drama", "b": "", "c": "", "d": "Drama"}
    folder = write_dataset(tmp_path, [("u", item, t) for t, item in enumerate("abcd")], items)
    with caplog.at_level(logging.WARNING):
        load(folder).build()
    assert caplog.text.count("2 of 4 items have no category") == 1


def rows(header):
    return [("u", item, t)[: header.count("\t") + 1] for t, item in enumerate("abcd")]


@pytest.mark.parametrize(
    ("inter_header", "items", "changes", "message"),
    [
        ("user_id:token\titem_id:token", "abcd", {}, r"toy.inter has no timestamp field 'timestamp'.*its fields are user_id, item_id"),
        (None, "abcd", {"category_field": "genres"}, r"no field 'genres'.*did you mean 'genre'\? its fields are item_id, genre"),
        (None, "abcd", {"category_field": None}, r"category_field is not set.*its fields are item_id, genre"),
        (None, "ab", {}, "toy.item lacks 2 items of toy.inter, the first is 'c'"),
        (None, "abcd", {"val_interval": {"timestamp": "[2,inf)"}}, "no user has 3 interactions left after filtering"),
        ("user_id:token\titem_id:token\ttimestamp", "abcd", {}, "column 'timestamp' of the header is not <field>:<type>"),
    ],
)  # fmt: skip
def test_bad_data_is_refused(tmp_path, inter_header, items, changes, message):
    header = inter_header or "user_id:token\titem_id:token\ttimestamp:float"
    folder = write_dataset(tmp_path, rows(header), dict.fromkeys(items, "Drama"), inter_header)
    with pytest.raises(ValueError, match=message):
        load(folder, **changes)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda inter, item: (inter.replace("\t", ","), item.replace("\t", ",")), r"toy\.inter, line 1: .*are there tabs"),
        (
            lambda inter, item: (inter, item.replace(":token_seq", "").replace(":token", "").replace("a W", "a|W")),
            r"toy\.item, line 1: column 'item_id'",
        ),
        (
            lambda inter, item: (inter, item.replace("Drama War", '"Drama War"').replace("\tWar", '\t"War"')),
            r"toy\.item, line 2: categories in 'genre' stand in quotes, as \"Drama War\"",
        ),
        (
            lambda inter, item: (inter, item.replace(":token_seq", "").replace(":token", "")),
            r"toy\.item, line 1: column 'item_id'.*'--category_separator= '",
        ),
        (
            lambda inter, item: (inter, item.replace("Drama War", "['Drama', 'War']").replace("\tWar", "\t['War']")),
            r"toy\.item, line 2: categories in 'genre' are printed as lists, as \['Drama', 'War'\]",
        ),
        (
            lambda inter, item: (inter, item.replace("Drama War", "Drama|War")),
            r"toy\.item, line 2: categories in 'genre' have \| between them, as Drama\|War",
        ),
        (
            lambda inter, item: (inter, item.replace("b\tWar", "b\t(no genres listed)")),
            r"toy\.item, line 3: categories in 'genre' are a name with spaces, \(no genres listed\)",
        ),
        (
            lambda inter, item: (inter, item.replace("b\tWar", "b\tWar\t9")),
            r"toy\.item, line 3: 3 fields, and the header has 2",
        ),
    ],
)
def test_a_mistake_in_atomic_files_is_named_with_its_line_and_the_command_that_mends_it(tmp_path, spoil, message):
    items = {"a": "Drama War", "b": "War", "c": "Drama War", "d": "War"}
    folder = write_dataset(tmp_path, [(user, item, t) for user in "uv" for t, item in enumerate("abcd")], items)
    files = [folder / "toy" / f"toy.{kind}" for kind in ("inter", "item")]
    for file, text in zip(files, spoil(*(file.read_text() for file in files)), strict=True):
        file.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        load(folder)
    command = re.search(r"To mend it: `leaprec (.*)`", str(caught.value))
    assert command
    assert main([*shlex.split(command[1]), "--show_progress=False"]) == 0
    settings = {key: value for key, value in SMALL.items() if key != "category_field"}
    mended = create_dataset(LeapRecConfig("SASRecCD", "toy-mended", config_dict={**settings, "data_path": str(folder)}))
    assert tokens_of(mended) == {"u": list("abcd"), "v": list("abcd")}
    assert set(mended.categories.names) == {"Drama", "War"}


def test_missing_times_and_a_missing_item_file_are_refused(tmp_path):
    folder = write_dataset(tmp_path, [("u", "a", 1), ("u", "b", ""), ("u", "c", 3)], dict.fromkeys("abc", "Drama"))
    with pytest.raises(ValueError, match="1 rows have no 'timestamp'"):
        load(folder)
    (folder / "toy" / "toy.item").unlink()
    with pytest.raises(ValueError, match=r"toy.item does not exist"):
        load(folder)


def test_times_without_an_order_and_dates_are_refused(tmp_path):
    inter = [("u", item, f"2020-01-0{t}") for t, item in enumerate("abcd", 1)]
    for kind, message in (
        ("token", "'timestamp' has type token, which has no order; write timestamp:float"),
        ("float", r"toy.inter: 4 values of timestamp:float are not numbers, the first in line 2 is '2020-01-01'"),
    ):
        header = f"user_id:token\titem_id:token\ttimestamp:{kind}"
        folder = write_dataset(tmp_path, inter, dict.fromkeys("abcd", "Drama"), header)
        with pytest.raises(ValueError, match=message):
            load(folder)


def test_dropping_short_users_keeps_the_least_number_of_interactions_an_item_must_have(tmp_path):
    inter = [(user, item, t) for user in ("u", "v") for t, item in enumerate("abcd")]
    inter += [("u", "x", 9), ("s1", "x", 1)]  # x has two users, and one when s1 is dropped
    folder = write_dataset(tmp_path, inter, dict.fromkeys("abcdx", "Drama"))
    assert tokens_of(load(folder, item_inter_num_interval="[2,inf)")) == {"u": list("abcd"), "v": list("abcd")}


def test_a_category_field_of_numbers_is_refused(tmp_path):
    folder = write_dataset(tmp_path, [("u", item, t) for t, item in enumerate("abcd")], dict.fromkeys("abcd", "1.5"))
    file = folder / "toy" / "toy.item"
    file.write_text(file.read_text().replace("genre:token_seq", "genre:float"))
    with pytest.raises(ValueError, match="'genre' has type float; it must be token or token_seq"):
        load(folder)


@pytest.mark.parametrize("change", [{"discretization": {"a": {"method": "LD"}}}, {"normalize_field": ["a"]}])
def test_a_setting_about_a_field_that_is_not_there_is_named(tmp_path, change):
    folder = write_dataset(tmp_path, [("u", item, t) for t, item in enumerate("abcd")], dict.fromkeys("abcd", "Drama"))
    with pytest.raises(ValueError, match=rf"{next(iter(change))}: Field \[a\] does not exist"):
        load(folder, **change)


@pytest.mark.parametrize("change", [{"user_inter_num_interval": "[9,inf)"}, {}])
def test_data_of_which_nothing_is_left_is_told(tmp_path, change):
    user = "u" if change else ""
    folder = write_dataset(tmp_path, [(user, item, t) for t, item in enumerate("abcd")], dict.fromkeys("abcd", "Drama"))
    with pytest.raises(ValueError, match=r"no row of toy\.inter is left: rows without a user"):
        load(folder, **change)


def test_rows_without_a_user_or_an_item_go_and_no_other(tmp_path, caplog):
    """Issue 21, 1: RecBole took the labels of rows for places after the first drop, and a good interaction went."""
    inter = [("", "a", 0), *(("u", item, t) for t, item in enumerate("abcd")), ("u", "", 9), ("v", "a", 1), ("", "", 2)]
    inter += [("v", "b", 2), ("v", "", 5), ("v", "c", 3)]
    folder = write_dataset(tmp_path, inter, {**dict.fromkeys("abcd", "Drama"), "": "War"})
    with caplog.at_level(logging.WARNING):
        assert tokens_of(load(folder)) == {"u": list("abcd"), "v": list("abc")}
    assert "dropped 4 rows of toy.inter without user_id or item_id, the first in line 2" in caplog.text
    assert "dropped 1 rows of toy.item without item_id, the first in line 6" in caplog.text


def test_the_first_row_of_an_item_has_its_categories_and_its_title(tmp_path, caplog):
    """Issue 21, 4: the categories were those of the first row, and the title that of the last."""
    folder = write_dataset(tmp_path, [("u", item, t) for t, item in enumerate("abcd")], dict.fromkeys("abcd", "Drama"))
    rows = ["item_id:token\tgenre:token_seq\ttitle:token", "a\tWar\tFirst", *(f"{item}\tDrama\t{item}" for item in "bcd")]
    (folder / "toy" / "toy.item").write_text("\n".join([*rows, "a\tComedy\tSecond", "a\tDrama\tThird"]) + "\n")
    with caplog.at_level(logging.WARNING):
        dataset = load(folder, title_field="title")
    place = dataset.token2id("item_id", "a")
    assert dataset.item_names()[place] == "First"
    assert [dataset.categories.names[c] for c in dataset.item_members[place]] == ["War"]
    assert "2 rows are of items that have one already, the first is 'a': the first row of each counts" in caplog.text


@pytest.mark.parametrize("time", ["inf", "-inf", "Infinity", "1e999"])
def test_a_time_without_end_is_refused(tmp_path, time):
    """Issue 21, 4."""
    inter = [("u", "a", 1), ("u", "b", time), ("u", "c", 3), ("u", "d", 4)]
    folder = write_dataset(tmp_path, inter, dict.fromkeys("abcd", "Drama"))
    with pytest.raises(ValueError, match=r"toy\.inter: 1 values of 'timestamp' are infinite, the first in line 3"):
        load(folder)


def test_a_category_that_an_item_names_twice_counts_once_and_is_told(tmp_path, caplog):
    """Issue 21, from the newcomer's list."""
    items = {"a": "Drama War Drama", "b": "War War", "c": "Drama", "d": "War"}
    folder = write_dataset(tmp_path, [("u", item, t) for t, item in enumerate("abcd")], items)
    with caplog.at_level(logging.WARNING):
        dataset = load(folder)
    assert "2 items name a category twice or more; it counts once" in caplog.text
    assert "Drama (2 items)" in dataset.told_categories()
    assert "War (3 items)" in dataset.told_categories()
    assert sorted(map(len, dataset.item_members)) == [0, 1, 1, 1, 2]


def test_a_folder_without_interactions_is_told_with_what_it_holds(tmp_path):
    """Issue 21, from the newcomer's list: "File dataset/raw/raw.inter not exist."."""
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "ratings.dat").write_text("1::2::3")
    with pytest.raises(ValueError, match=r"toy\.inter does not exist, .* holds ratings\.dat\. `leaprec data csv --help`"):
        load(tmp_path)


def test_an_item_file_without_the_field_of_the_ids_is_told_with_the_key(tmp_path):
    """Issue 21, from the newcomer's list: "iid_field must be loaded if item_feat is loaded."."""
    header = "user_id:token\tmovie:token\ttimestamp:float"
    folder = write_dataset(
        tmp_path, [("u", item, t) for t, item in enumerate("abcd")], dict.fromkeys("abcd", "Drama"), header
    )
    with pytest.raises(ValueError, match=r"toy\.item has no field 'movie' \(ITEM_ID_FIELD\); its fields are item_id, genre"):
        load(folder, ITEM_ID_FIELD="movie")


@pytest.mark.parametrize("kind", ["inter", "item"])
@pytest.mark.parametrize("where", ["header", "row"])
def test_a_file_in_another_encoding_is_named(tmp_path, kind, where):
    """Issue 21, 8: bad UTF-8 without the file's name."""
    folder = write_dataset(tmp_path, [("u", item, t) for t, item in enumerate("abcd")], dict.fromkeys("abcd", "Drama"))
    file = folder / "toy" / f"toy.{kind}"
    header, _, rest = file.read_bytes().partition(b"\n")
    file.write_bytes(
        header.replace(b":", b"\xe9:", 1) + b"\n" + rest if where == "header" else header + b"\n" + b"\xe9" + rest
    )
    with pytest.raises(ValueError, match=rf"toy\.{kind} (is not a text in utf-8 \(encoding\)|cannot be read)"):
        load(folder)


@pytest.mark.parametrize("kind", ["inter", "item"])
def test_ids_that_are_no_tokens_are_refused_with_the_file(tmp_path, kind):
    """Found by tests/fuzz: `item_id:token_seq` ended in a traceback."""
    folder = write_dataset(tmp_path, [("u", item, t) for t, item in enumerate("abcd")], dict.fromkeys("abcd", "Drama"))
    file = folder / "toy" / f"toy.{kind}"
    file.write_text(file.read_text().replace("item_id:token", "item_id:token_seq", 1))
    with pytest.raises(ValueError, match=rf"toy\.{kind}: 'item_id' has type token_seq; write item_id:token in its header"):
        load(folder)


# Found by tests/fuzz.


def test_a_file_of_interactions_without_any_field_that_is_used_is_told_with_the_key(toy):
    path = toy / "toy" / "toy.inter"
    path.write_text("\n".join(["genre:token_seq", *path.read_text().splitlines()[1:]]))
    with pytest.raises(ValueError, match=r"toy\.inter has no field 'user_id' \(USER_ID_FIELD\)"):
        load(toy)


def test_items_without_any_category_are_told_with_the_key(toy):
    path = toy / "toy" / "toy.item"
    path.write_text("item_id:token\tgenre:token_seq\n" + "".join(f"i{n}\t\n" for n in range(40)))
    with pytest.raises(ValueError, match="category_field 'genre': no item of toy has any category"):
        _ = load(toy).categories


def test_titles_that_cannot_be_read_are_told_before_anything_is_written(toy, tmp_path, capsys):
    path = toy / "toy" / "toy.item"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    words = [f"--{key}={value}" for key, value in SMALL.items()] + ["--dataset=toy", f"--data_path={toy}"]
    assert main([*words, "--title_field=genre", f"--output_dir={tmp_path / 'run'}"]) == 2
    assert "toy.item, line 1:" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
