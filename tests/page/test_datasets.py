"""The front page of a study of several datasets."""

import re
from html import unescape
from urllib.parse import unquote, urlsplit

import pytest

from recbole_leaprec.analysis.describe import Description
from recbole_leaprec.page.datasets import write_datasets

SIZES = {
    "users": 2, "items": 3, "items_taken": 3, "categories": 2, "profiles": 2, "interactions": 9, "short_users": 0,
    "short_interactions": 0, "mean_length": 4.5, "lengths": (4, 4.5, 5), "density": 1.0, "categories_per_item": 1.0,
    "items_without_category": 0, "category_sizes": {"a": 2, "b": 1}, "shift": {},
}  # fmt: skip


@pytest.mark.parametrize("name", ["ml-1m", "a#b 50%", "a?b&c", 'x"<y>', "c:d"])
def test_a_link_leads_to_the_folder_of_the_dataset_whatever_it_is_called(tmp_path, name):
    text = write_datasets(tmp_path, "title", {name: Description(name, **SIZES)}).read_text()
    address = urlsplit(unescape(re.search(r'<a href="(.*?)">', text)[1]))
    assert (address.scheme, address.query, address.fragment) == ("", "", "")
    assert unquote(address.path) == f"{name}/report.html"
