// Why an item stands where it does in a user's list.

import { K } from "./data.js";
import { count, share } from "./format.js";
import { categoriesOf, category, mix } from "./items.js";

/** What an item is in the list for: the category of its own that the items above it are most short of, or its relevance. */
export function why(id, above, preference, rank, lambda) {
  const place = rank ? `: place ${rank} of the model's own ranking` : "";
  if (lambda === 0) return { text: `by relevance alone${place}` };
  const before = mix(above);
  let most = null;
  for (const index of categoriesOf(id)) {
    const short = preference[index] - before[index];
    // Shares are said in whole per cent: less than one is no reason.
    const told = Math.round(100 * preference[index]) > Math.round(100 * before[index]);
    if (told && (most === null || short > most.short)) most = { index, short };
  }
  if (!most) return { text: `kept for relevance${place}` };
  const there = above.length ? `${share(before[most.index])} of the list above` : "nothing above it yet";
  const text = `brings ${category(most.index)}: ${share(preference[most.index])} of the recent mix, ${there}`;
  return { text, brings: most.index };
}

/** From its rank in the model's own ranking to its place in the list: the kind of move, its word, and the rest of the text. */
export function movement(rank, place) {
  if (!rank) return ["same", "", ""];
  if (rank > K) return ["new", "+ new", `, was ${count(rank)}`];
  if (rank > place) return ["up", "▲ up", ` from ${rank}`];
  if (rank < place) return ["down", "▼ down", ` from ${rank}`];
  return ["same", "", `= place ${rank}, as before`];
}
