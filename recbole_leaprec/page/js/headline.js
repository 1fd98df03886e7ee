// The lines at the top of the page: the dataset, and what the reference reached.

import { ALPHA, significance } from "./comparison.js";
import { data, isAblation, K, NAMES, reference, several } from "./data.js";
import { byId, el } from "./dom.js";
import { atLambda, count, filled, fixed, known, plain } from "./format.js";
import { nearest, referencePoint } from "./points.js";

export function headline() {
  const point = referencePoint();
  const others = comparedAtOneLevel(point);
  if (data.dataset) byId("facts").append(facts(data.dataset));
  if (point) byId("lead").append(reached(point));
  if (others.length) byId("lead").append(compared(others));
}

const facts = (set) => [
  set.name,
  known(set.users) && `${count(set.users)} users`,
  known(set.items) && `${count(set.items)} items`,
  known(set.interactions) && `${count(set.interactions)} interactions`,
  filled(set.categories) && `${count(set.categories.length)} categories`,
].filter(Boolean).join(" · ");

/** The reference at a point, against the model's own ranking. */
function reached(point) {
  const number = (value) => el("strong", {}, fixed(value));
  const said = el("p", {}, `${reference.name} at ${atLambda(point)}: `);
  ["skl", "ndcg"].forEach((metric, index) => {
    said.append(`${index ? ", " : ""}${NAMES[metric]} `, number(point[metric]));
    if (known(reference.base?.[metric])) said.append(" against ", number(reference.base[metric]));
    if (!index && reference.base) said.append(" for the model's own ranking");
  });
  said.append(".");
  return said;
}

/** How many of the other methods the reference is better than. */
function compared(others) {
  const better = others.filter((row) => row.value < row.reference_value);
  const clear = better.filter((row) => significance(row) < ALPHA);
  return el("p", {},
    `At the same S_KL@${K} of ${plain(others[0].skl)}, its ${NAMES.ndcg} is higher than that of ${better.length} of ` +
    `${others.length} other ${others.length === 1 ? "method" : "methods"}${several ? " compared with it" : ""}, ` +
    `significantly so for ${clear.length} (p < ${ALPHA} after Holm's correction).`);
}

/** Comparisons of the reference's nDCG with other methods', at the S_KL that is nearest to the point's. */
function comparedAtOneLevel(point) {
  const rows = (data.comparisons ?? []).filter((row) =>
    row.reference === reference?.name && row.metric === "ndcg" && !isAblation(row) && known(row.value));
  if (!rows.length) return [];
  const levels = rows.map((row) => row.skl);
  const level = levels[nearest(levels, point?.skl ?? levels[0])];
  return rows.filter((row) => row.skl === level);
}
