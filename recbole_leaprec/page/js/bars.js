// A user's recent mix of categories beside that of the list, as bars.

import { byId, el } from "./dom.js";
import { share } from "./format.js";
import { C, categoriesOf, category, mix } from "./items.js";

/** Bars in an order that does not depend on lambda, so that they grow and shrink in their places. */
export function bars({ user, name, lists, list }) {
  const recent = user.preference;
  const now = mix(list);
  const ever = new Set(lists.flat().flatMap((id) => categoriesOf(id)));
  const shown = [...new Array(C).keys()]
    .filter((index) => recent[index] >= 0.005 || ever.has(index))
    .sort((a, b) => recent[b] - recent[a] || a - b);
  const holder = byId("user-mix");
  const key = `${user.user} ${name}`;
  if (holder.dataset.key !== key) {
    holder.dataset.key = key;
    holder.replaceChildren(...shown.map(emptyRow));
  }
  const widest = Math.max(0.01, ...shown.map((index) => recent[index]), ...shown.map((index) => now[index]));
  [...holder.children].forEach((row, at) => {
    const index = shown[at];
    [recent[index], now[index]].forEach((value, which) => {
      const cell = row.children[1 + which];
      cell.querySelector("i").style.width = `${(100 * value) / widest}%`;
      cell.querySelector(".value").textContent = share(value);
    });
  });
  const rest = C - shown.length;
  byId("user-mix-rest").textContent = rest ? `${rest} more ${rest === 1 ? "category is" : "categories are"} in neither.` : "";
}

function emptyRow(index) {
  const bar = (kind) => el("span", { class: "share", role: "cell" },
    el("span", { class: "track" }, el("i", { class: kind })), el("span", { class: "value" }));
  return el("div", { class: "mix", role: "row", "data-category": category(index) },
    el("span", { role: "rowheader" }, category(index)), bar("recent"), bar("list"));
}
