// The colour, symbol and dash of each method, the same in every plot and legend.

import { isAblation, methods, reference } from "./data.js";

const SERIES = 8;
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "pentagon", "hexagon"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
// Ablations are drawn with their reference and without the other methods: they go on from its look.
const places = new Map();
for (const group of [methods.filter((method) => !isAblation(method)), methods.filter(isAblation)]) {
  const first = places.size ? (places.get(reference.name) ?? -1) + 1 : 0;
  group.forEach((method, index) => places.set(method.name, first + index));
}

export function look(name) {
  const index = places.get(name) ?? 0;
  return { variable: `--series-${index % SERIES}`, symbol: SYMBOLS[index % SYMBOLS.length], dash: DASHES[index % DASHES.length] };
}

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = {
  circle: "M18 9m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0", square: "M14 5h8v8h-8z", diamond: "M18 3.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
  "triangle-up": "M18 4l5 9h-10z", cross: "M16 4h4v3h3v4h-3v3h-4v-3h-3v-4h3z", "triangle-down": "M18 14l-5 -9h10z",
  pentagon: "M18 4l5 3.8l-1.9 6h-6.2l-1.9 -6z", hexagon: "M15.5 4.5h5l2.7 4.5l-2.7 4.5h-5l-2.7 -4.5z",
  star: "M18 2.5l1.9 4.3l4.6 .4l-3.5 3.1l1.1 4.6l-4.1 -2.5l-4.1 2.5l1.1 -4.6l-3.5 -3.1l4.6 -.4z",
};
const STROKES = { solid: "", dash: "7 3", dot: "2 3", dashdot: "7 3 2 3", longdash: "12 4" };

/** A piece of a curve for the legend. */
export function sample({ variable, symbol, dash }, line = true) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("width", "36");
  svg.setAttribute("height", "18");
  svg.setAttribute("aria-hidden", "true");
  const add = (d, style) => {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", d);
    path.setAttribute("style", style);
    svg.append(path);
  };
  if (line) add("M0 9h36", `stroke:var(${variable});stroke-width:2;fill:none;stroke-dasharray:${STROKES[dash] || "none"}`);
  add(SHAPES[symbol], `fill:var(${variable})`);
  return svg;
}
