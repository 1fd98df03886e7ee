// Section: one row per method, at the point that the reader chooses.

import { choices } from "./choices.js";
import { isAblation, isReference, LESS_IS_BETTER, methods, METRICS, NAMES } from "./data.js";
import { byId, el } from "./dom.js";
import { change, filled, fixed, known, plain, seconds, signed } from "./format.js";
import { bases } from "./points.js";
import { table } from "./table.js";

export function summary() {
  if (!methods.length) return false;
  const fill = table(byId("summary-table"), "Each method and each model's own ranking", [
    { key: "method", label: "Method" },
    { key: "lambda", label: "lambda", number: true },
    ...METRICS.map((key) => ({ key, label: NAMES[key], number: true })),
    { key: "ndcg_change", label: "nDCG change", number: true },
    { key: "skl_change", label: "S_KL change", number: true },
    { key: "seconds", label: "Seconds", number: true },
  ]);
  const own = bases(methods).map(baseRow);
  const groups = choices();
  const select = byId("summary-choice");
  if (!groups.length) {
    select.closest(".controls").remove();
    fill(own);
    return true;
  }

  const chosen = new Map(groups.flatMap((group) => group.choices).map((choice) => [choice.key, choice]));
  const show = () => {
    const { said, pick } = chosen.get(select.value);
    const rows = methods.filter((method) => filled(method.points)).map((method) => methodRow(method, pick(method.points)));
    markBest(rows);
    fill([...own, ...rows]);
    byId("summary-note").textContent = [
      said, "The best reranked value of a column is bold.",
      rows.some((row) => row.cells.ndcg.attributes["data-interval"]) && "Below each value: its 95 % interval.",
      rows.some((row) => !row.cells.lambda) && "– : not measured, or no lambda gets there.",
    ].filter(Boolean).join(" ");
  };
  select.append(...groups.map((group) =>
    el("optgroup", { label: group.label }, ...group.choices.map(({ key, text }) => el("option", { value: key }, text)))));
  select.addEventListener("change", show);
  show();
  return true;
}

/** The cells of the metrics, with their intervals. */
const metricCells = (values) => Object.fromEntries(METRICS.map((metric) => {
  const [low, high] = [values[`${metric}_low`], values[`${metric}_high`]];
  const interval = known(low) && known(high) ? `${fixed(low)}–${fixed(high)}` : null;
  const attributes = { "data-metric": metric, "data-interval": interval };
  return [metric, { text: fixed(values[metric]), value: values[metric], attributes }];
}));

/** How far a value is from that of the model's own ranking, and whether that is for the better. */
function changeCell(value, from, metric) {
  const ratio = change(value, from);
  const better = metric === "skl" ? ratio < 0 : ratio > 0;
  return {
    text: signed(ratio), value: ratio, attributes: { "data-metric": `${metric}_change` },
    class: ratio === null || Math.abs(ratio) < 0.0005 ? null : better ? "better" : "worse",
  };
}

const baseRow = ({ model, base, methods: names }) => ({
  attributes: { class: "base", "data-method": model, "data-lambda": "base" },
  cells: {
    method: { text: model, content: [`${model}, own ranking`, el("small", {}, `base of ${names.join(", ")}`)] },
    ...metricCells(base),
  },
});

/** The row of a method at a point; without one, a row of dashes. */
function methodRow(method, point) {
  const about = [method.model, method.reranker, isAblation(method) && "ablation", method.seeds > 1 && `${method.seeds} seeds`];
  const name = { text: method.name, content: [method.name, el("small", {}, about.filter(Boolean).join(" · "))] };
  const attributes = {
    class: isReference(method.name) ? "reference" : null, "data-method": method.name,
    "data-lambda": known(point?.lambda) ? plain(point.lambda) : "",
  };
  if (!point) return { attributes, cells: { method: name, ...metricCells({}) } };
  return {
    attributes,
    cells: {
      method: name,
      lambda: { text: plain(point.lambda), value: point.lambda },
      ...metricCells(point),
      ndcg_change: changeCell(point.ndcg, method.base?.ndcg, "ndcg"),
      skl_change: changeCell(point.skl, method.base?.skl, "skl"),
      seconds: { text: seconds(point.seconds), value: point.seconds, attributes: { "data-metric": "seconds" } },
    },
  };
}

/** The best value of each metric, where there are several to choose from. */
function markBest(rows) {
  for (const metric of METRICS) {
    const values = rows.map((row) => row.cells[metric].value).filter(known);
    const best = LESS_IS_BETTER.has(metric) ? Math.min(...values) : Math.max(...values);
    if (values.length > 1) for (const row of rows) if (row.cells[metric].value === best) row.cells[metric].class = "best";
  }
}
