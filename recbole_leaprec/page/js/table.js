// Tables that can be sorted.

import { LESS_IS_BETTER } from "./data.js";
import { el } from "./dom.js";
import { known } from "./format.js";

/**
 * A table that can be sorted by its headers.
 * Columns: {key, label, number}; rows: {attributes, cells: {key: {text, value, attributes}}}, the first column being the row's name.
 */
export function table(holder, caption, columns) {
  let rows = [];
  let sorted = null;
  const body = el("tbody");
  const heads = columns.map((column) =>
    el("th", { scope: "col", class: column.number ? "number" : null },
      el("button", { type: "button", onclick: () => sortBy(column) }, column.label)));
  holder.replaceChildren(el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), body));
  holder.setAttribute("role", "region");
  holder.setAttribute("aria-label", caption);
  holder.tabIndex = 0; // so that the keyboard can scroll it

  function sortBy(column) {
    // Numbers start with the best: most first, but for those of which less is better.
    const first = column.number && !LESS_IS_BETTER.has(column.key) ? -1 : 1;
    if (sorted?.key !== column.key) sorted = { key: column.key, direction: first };
    else if (sorted.direction === first) sorted.direction = -first;
    else sorted = null; // a third time: the order of the data
    draw();
  }

  function draw() {
    const order = [...rows];
    if (sorted) {
      const value = (row) => row.cells[sorted.key]?.value ?? row.cells[sorted.key]?.text;
      const missing = (row) => row.cells[sorted.key]?.text === "–";
      order.sort((a, b) => {
        if (missing(a) || missing(b)) return missing(a) - missing(b);
        const [x, y] = [value(a), value(b)];
        return sorted.direction * (known(x) && known(y) ? x - y : String(x).localeCompare(String(y)));
      });
    }
    heads.forEach((head, index) => {
      if (sorted?.key === columns[index].key) head.setAttribute("aria-sort", sorted.direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren(...order.map((row) => el("tr", row.attributes, ...columns.map((column, index) => {
      const cell = row.cells[column.key] ?? { text: "–" };
      const classes = [column.number ? "number" : "", cell.class ?? ""].join(" ").trim() || null;
      const attributes = { scope: index ? null : "row", class: classes, ...cell.attributes };
      return el(index ? "td" : "th", attributes, ...[cell.content ?? cell.text].flat());
    }))));
  }

  return (newRows) => {
    rows = newRows;
    draw();
  };
}
