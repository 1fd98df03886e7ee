// Curves of accuracy against S_KL: two plots, their legend, and the points as a table.

import { isReference, METRICS, NAMES } from "./data.js";
import { byId, el } from "./dom.js";
import { atLambda, escaped, fixed, known, plain, seconds } from "./format.js";
import { look, sample } from "./look.js";
import { colour, layout, plot } from "./plot.js";
import { bases } from "./points.js";
import { table } from "./table.js";

export function curves(section, shown) {
  const holder = byId(section).querySelector(".curves");
  const hidden = new Set(); // names of methods
  let intervals = false;
  const drawn = shown.map((method) => ({
    ...method, look: look(method.name),
    points: (method.points ?? []).filter((point) => known(point.skl)).sort((a, b) => (a.lambda ?? 0) - (b.lambda ?? 0)),
  }));
  const own = bases(shown);

  const redraw = () => plots.forEach((draw) => draw());
  const box = (text, checked, picture, apply, attributes = {}) => {
    const onchange = (event) => {
      apply(event.target.checked);
      redraw();
    };
    const input = el("input", { type: "checkbox", onchange });
    input.checked = checked;
    return el("label", attributes, input, picture, text);
  };
  const ranges = drawn.some((method) => method.points.some((point) => known(point.ndcg_low)));
  const legend = el("fieldset", { class: "legend" }, el("legend", {}, "Curves to show"),
    ...drawn.filter((method) => method.points.length).map(({ name, look: its }) =>
      box(name, true, sample(its), (on) => (on ? hidden.delete(name) : hidden.add(name)))),
    own.length ? el("span", { class: "entry" }, sample({ variable: "--text", symbol: "star" }, false), "a model's own ranking") : null,
    ranges ? box("95 % intervals", intervals, null, (on) => { intervals = on; }, { class: "aside" }) : null);
  const panels = ["ndcg", "hit"].map((metric) => ({ metric, panel: el("div", { class: "plot", id: `${section}-${metric}` }) }));
  holder.append(legend, el("div", { class: "plots" }, ...panels.map(({ panel }) => panel)));

  const plots = panels.map(({ metric, panel }) =>
    plot(panel, `${NAMES[metric]} against ${NAMES.skl}; all points are in the table below`, () => ({
      traces: [
        ...drawn.map((method) => ({ ...curve(method, metric, intervals), visible: !hidden.has(method.name) })),
        ...own.map((base) => ({ ...star(base, metric), visible: base.methods.some((name) => !hidden.has(name)) })),
      ],
      shape: layout(`${NAMES.skl}, lower is better`, NAMES[metric], { xaxis: { rangemode: "tozero" } }),
    })));
  holder.append(el("details", {}, el("summary", {}, "All points as a table"), pointsTable(drawn)));
}

/** The trace of a method. */
function curve({ name, points, look: its }, metric, intervals) {
  const color = colour(its.variable);
  return {
    type: "scatter", mode: "lines+markers", cliponaxis: false, name: escaped(name),
    x: points.map((point) => point.skl), y: points.map((point) => point[metric]),
    hovertext: points.map((point) => hover(name, point, atLambda(point))), hovertemplate: "%{hovertext}<extra></extra>",
    line: { color, dash: its.dash, width: isReference(name) ? 3 : 2 },
    marker: { color, symbol: its.symbol, size: 8 },
    error_y: {
      type: "data", symmetric: false, visible: intervals, thickness: 1, width: 3, color,
      array: points.map((point) => (point[`${metric}_high`] ?? point[metric]) - point[metric]),
      arrayminus: points.map((point) => point[metric] - (point[`${metric}_low`] ?? point[metric])),
    },
  };
}

/** The trace of a model's own ranking. One model's star has its method's colour; one that several methods share has none. */
function star({ model, base, methods: names }, metric) {
  const color = colour(names.length === 1 ? look(names[0]).variable : "--text");
  return {
    type: "scatter", mode: "markers", name: escaped(model), x: [base.skl], y: [base[metric]],
    hovertext: [hover(`${model}, own ranking`, base, `without reranking; base of ${names.join(", ")}`)],
    hovertemplate: "%{hovertext}<extra></extra>",
    marker: { symbol: "star", size: 15, color, line: { width: 1.5, color: colour("--surface") } },
  };
}

function hover(name, values, where) {
  const lines = ["ndcg", "hit", "skl", "ckl"].filter((metric) => known(values[metric])).map((metric) => {
    const [low, high] = [values[`${metric}_low`], values[`${metric}_high`]];
    return `${NAMES[metric]} ${fixed(values[metric])}${known(low) && known(high) ? ` (${fixed(low)} to ${fixed(high)})` : ""}`;
  });
  if (known(values.seconds)) lines.push(`${seconds(values.seconds)} seconds`);
  return [`<b>${escaped(name)}</b>`, escaped(where), ...lines].join("<br>");
}

function pointsTable(drawn) {
  const holder = el("div", { class: "figure" });
  const fill = table(holder, "All points of the curves", [
    { key: "method", label: "Method" }, { key: "lambda", label: "lambda", number: true },
    ...METRICS.map((key) => ({ key, label: NAMES[key], number: true })),
  ]);
  fill(drawn.flatMap((method) => method.points.map((point) => ({
    cells: {
      method: { text: method.name }, lambda: { text: plain(point.lambda), value: point.lambda },
      ...Object.fromEntries(METRICS.map((key) => [key, { text: fixed(point[key]), value: point[key] }])),
    },
  }))));
  return holder;
}
