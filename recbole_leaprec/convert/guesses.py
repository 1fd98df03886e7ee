"""Guesses from their names which column is the user, the item, and so on."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

NAMES = {
    "user": ("user", "userid", "uid", "customer", "customerid", "member", "memberid", "reviewerid", "visitorid", "sessionid", "username", "account", "kunde"),
    "item": ("item", "itemid", "iid", "product", "productid", "movieid", "asin", "parentasin", "bookid", "trackid", "songid", "articleid", "sku", "gameid", "appid", "contentid", "stockcode"),
    "time": ("timestamp", "time", "ts", "datetime", "date", "createdat", "eventtime", "purchasedat", "boughtat", "orderedat", "orderdate", "invoicedate", "purchasedate", "tdat", "unixreviewtime", "when", "datum"),
    "rating": ("rating", "ratings", "stars", "score", "overall", "preference"),
    "categories": ("categories", "category", "genres", "genre", "department", "departments", "tags", "class", "classes", "topics", "topic", "categoryname", "categorycode", "productgroupname", "departmentname", "categoryid"),
    "title": ("title", "name", "itemname", "productname", "movietitle", "itemtitle", "prodname", "description"),
}  # fmt: skip
"""Names that columns often have, in small letters and without other signs. Earlier names are preferred."""


def guess_column(what: str, columns: Sequence[str], taken: Collection[str] = ()) -> str | None:
    """The column that is most likely the user, the item, and so on; None if no name fits.

    Example:
        >>> guess_column("user", ["movieId", "userId", "rating"]), guess_column("title", ["movieId"])
        ('userId', None)
    """
    by_name = {re.sub(r"[^a-z0-9]", "", column.lower()): column for column in reversed(columns) if column not in taken}
    return next((by_name[name] for name in NAMES[what] if name in by_name), None)
