// Section: how S_KL spreads over users, by lambda.

import { data, NAMES } from "./data.js";
import { byId, el, options } from "./dom.js";
import { filled, fixed, known, plain } from "./format.js";
import { look } from "./look.js";
import { colour, layout, plot } from "./plot.js";
import { nearest } from "./points.js";
import { lambdaSlider, startLambda, startMethod } from "./slider.js";

export function density() {
  if (!filled(data.density?.methods) || !filled(data.density.grid)) return false;
  const named = new Map(data.density.methods.map((method) => [method.name, method]));
  const select = byId("density-method");
  options(select, [...named.keys()].map((name) => [name, name]), startMethod(data.density.methods));
  const slider = lambdaSlider(byId("density-lambda"), byId("density-value"), () => show());
  slider.over(named.get(select.value).lambdas, startLambda());
  const draw = plot(byId("density-plot"), `Density of ${NAMES.skl} over users; the means are in the text above`,
    () => picture(named.get(select.value), slider.index));

  function say() {
    const method = named.get(select.value);
    byId("density-figures").replaceChildren(
      `${method.name}, lambda ${plain(slider.lambda)}: mean ${NAMES.ndcg} `,
      el("strong", { id: "density-ndcg" }, fixed(method.ndcg?.[slider.index])),
      `, mean ${NAMES.skl} `, el("strong", { id: "density-skl" }, fixed(method.skl?.[slider.index])), ".");
  }

  function show() {
    draw();
    say();
  }

  select.addEventListener("change", () => {
    slider.over(named.get(select.value).lambdas);
    show();
  });
  say();
  return true;
}

/** The densities of a method at the lambda with this index and, dotted, at the one nearest to 0, and their means. */
function picture(method, index) {
  const { grid } = data.density;
  const end = grid[grid.length - 1];
  const first = nearest(method.lambdas, 0);
  const drawn = index === first ? [first] : [first, index];
  const marked = drawn.filter((at) => known(method.skl?.[at]));
  const ink = colour(look(method.name).variable);
  const inkAt = (at) => (at === index ? ink : colour("--muted"));
  const lambdaAt = (at) => `lambda ${plain(method.lambdas[at])}`;

  const curve = (at, style) => ({
    type: "scatter", mode: "lines", x: grid, y: method.curves[at], name: lambdaAt(at),
    hovertemplate: `${lambdaAt(at)}<br>${NAMES.skl} %{x:.3f}<br>density %{y:.3f}<extra></extra>`, ...style,
  });
  const traces = [curve(first, { line: { color: colour("--muted"), width: 1.5, dash: "dot" } })];
  if (index !== first) {
    const fillcolor = ink.replace("rgb(", "rgba(").replace(")", ", 0.16)");
    traces.push(curve(index, { line: { color: ink, width: 2.5 }, fill: "tozeroy", fillcolor }));
  }
  const top = Math.max(...traces.flatMap((trace) => trace.y).filter(known));

  const mean = (at) => ({
    type: "line", xref: "x", yref: "paper", x0: method.skl[at], x1: method.skl[at], y0: 0, y1: 1,
    line: { color: inkAt(at), width: 1, dash: "dash" },
  });
  const note = (at) => {
    const left = method.skl[at] < end / 2; // there the words stand right of the line, else left, and so stay inside
    return {
      x: method.skl[at], y: at === first && drawn.length > 1 ? 0.9 : 1, yref: "paper", text: `mean, ${lambdaAt(at)}`, showarrow: false,
      font: { color: inkAt(at), size: 12 }, xanchor: left ? "left" : "right", xshift: left ? 5 : -5, yanchor: "top",
    };
  };
  return {
    traces,
    shape: layout(`${NAMES.skl} of a user's list`, "density", {
      xaxis: { range: [0, end] }, yaxis: { range: [0, 1.12 * top] }, shapes: marked.map(mean), annotations: marked.map(note),
    }),
  };
}
