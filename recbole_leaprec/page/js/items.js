// Items: their names, their categories, and the mix of categories of a list.

import { data } from "./data.js";
import { el } from "./dom.js";

const items = data.items ?? {};
const categories = data.dataset?.categories ?? [];
export const C = categories.length || (data.explorer?.users?.[0]?.preference?.length ?? 0);

export const isItem = (id) => Boolean(items[id]);
export const title = (id) => items[id]?.name ?? `item ${id}`;
export const category = (index) => categories[index] ?? `category ${index}`;
export const categoriesOf = (id) => items[id]?.categories ?? [];

/** An item counts 1/n for each of its n categories, one without any equally for all; a list is the mean of its items. */
export function mix(ids) {
  const sum = new Array(C).fill(0);
  for (const id of ids) {
    const its = categoriesOf(id);
    if (its.length) for (const index of its) sum[index] += 1 / its.length / ids.length;
    else for (let index = 0; index < C; index += 1) sum[index] += 1 / C / ids.length;
  }
  return sum;
}

/** The categories of an item, the one that it brings into the list marked. */
export function chips(id, brings) {
  const its = categoriesOf(id);
  const chip = (index) => el("span", { class: index === brings ? "chip brings" : "chip" }, category(index));
  return el("span", { class: "chips" }, ...(its.length ? its.map(chip) : [el("span", { class: "chip" }, "no category")]));
}
