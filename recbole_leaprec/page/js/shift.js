// Section: how far users' category mixes move with time.

import { data } from "./data.js";
import { byId } from "./dom.js";
import { count, filled, fixed, known, plain } from "./format.js";
import { colour, layout, plot } from "./plot.js";

export function shift() {
  const points = data.shift?.points;
  if (!filled(points)) return false;
  const [first, last] = [points[0], points[points.length - 1]];
  byId("shift-note").textContent =
    `How far a user's category mix moves with time: the KL divergence between two windows of ${data.shift.window} items, ` +
    `by the interval, that is, how many items later the second one starts; ` +
    `at 0 the two are the same, below ${data.shift.window} they overlap. ` +
    `From interval ${plain(first.interval)} to ${plain(last.interval)} it goes from ${fixed(first.kl)} to ${fixed(last.kl)}.`;
  plot(byId("shift-plot"), byId("shift-note").textContent, () => ({
    traces: [{
      type: "scatter", mode: "lines+markers", x: points.map((point) => point.interval), y: points.map((point) => point.kl),
      hovertext: points.map(hoverText), hovertemplate: "%{hovertext}<extra></extra>",
      line: { color: colour("--series-0"), width: 2.5 }, marker: { size: 7 },
    }],
    shape: layout("interval, items", "KL divergence", { yaxis: { rangemode: "tozero" } }),
  }));
  return true;
}

const hoverText = ({ interval, kl, users }) =>
  `interval ${plain(interval)}<br>KL ${fixed(kl)}${known(users) ? `<br>${count(users)} users` : ""}`;
