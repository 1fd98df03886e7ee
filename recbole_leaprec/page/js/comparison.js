// Section: every method against its reference at the same S_KL.

import { data, isAblation, NAMES, several } from "./data.js";
import { byId, el, options } from "./dom.js";
import { chance, change, filled, fixed, known, plain, signed } from "./format.js";
import { table } from "./table.js";

export const ALPHA = 0.05;
export const significance = (row) => row.p_holm ?? row.p ?? 1;

export function comparison() {
  if (!filled(data.comparisons)) return false;
  const name = several ? "the reference" : data.reference ?? "the reference";
  byId("comparison-note").textContent =
    `Every method against ${name}${several ? " that its row names" : ""}, both at the same S_KL. ` +
    `The difference is the method's value less that of ${name}. ` +
    `Beside p stands p after Holm's correction for the number of tests; ` +
    `a difference is called significant where that is below ${ALPHA}.`;
  const fill = table(byId("comparison-table"), `Methods against ${several ? "their references" : name} at the same S_KL`, [
    { key: "method", label: "Method" }, ...(several ? [{ key: "against", label: "Reference" }] : []),
    { key: "level", label: NAMES.skl, number: true }, { key: "metric", label: "Metric" },
    { key: "value", label: "Value", number: true }, { key: "reference", label: several ? "Reference's value" : name, number: true },
    { key: "difference", label: "Difference", number: true }, { key: "p", label: "p", number: true },
    { key: "p_holm", label: "p, Holm", number: true }, { key: "verdict", label: "Verdict" },
  ]);
  const metrics = [...new Set(data.comparisons.map((row) => row.metric))];
  const select = byId("comparison-metric");
  options(select, [...metrics.map((metric) => [metric, NAMES[metric] ?? metric]), ["", "all"]], metrics[0]);
  const show = () => fill(data.comparisons.filter((row) => !select.value || row.metric === select.value).map(comparisonRow));
  select.addEventListener("change", show);
  if (metrics.length < 2) byId("comparison-controls").remove();
  show();
  return true;
}

function comparisonRow(row) {
  const [words, kind] = verdict(row);
  const ratio = change(row.value, row.reference_value);
  const name = isAblation(row) ? [row.method, el("span", { class: "aside" }, " ablation")] : row.method;
  return {
    attributes: { "data-method": row.method, "data-skl": plain(row.skl), "data-metric": row.metric },
    cells: {
      method: { text: row.method, content: name },
      against: { text: row.reference },
      level: { text: fixed(row.skl), value: row.skl },
      metric: { text: NAMES[row.metric] ?? row.metric },
      value: { text: fixed(row.value), value: row.value },
      reference: { text: fixed(row.reference_value), value: row.reference_value },
      difference: { text: signed(ratio), value: ratio },
      p: { text: chance(row.p), value: row.p },
      p_holm: { text: chance(row.p_holm), value: row.p_holm },
      verdict: { text: words, class: kind },
    },
  };
}

/** The words of a verdict and their class. */
function verdict(row) {
  if (!known(row.value) || !known(row.reference_value)) return ["–", null];
  if (significance(row) >= ALPHA) return ["≈ not significant", null];
  if (row.value < row.reference_value) return ["▼ significantly lower", "significant worse"];
  return ["▲ significantly higher", "significant better"];
}
