// Plots by Plotly, in the colours of the page.

import { el } from "./dom.js";

export const redraws = []; // every plot again, in the colours of the scheme
const probe = el("span", { hidden: true });
document.body.append(probe);

/** A CSS variable as a colour that Plotly understands. */
export function colour(variable) {
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

export function layout(x, y, extra = {}) {
  const axis = (title) => ({
    title: { text: title, standoff: 10, font: { size: 13 } }, gridcolor: colour("--grid"), linecolor: colour("--line"),
    zeroline: false, showline: true, ticks: "outside", tickcolor: colour("--line"), ticklen: 4, automargin: true,
  });
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "closest",
    // A finger on a plot scrolls the page; a mouse zooms.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    margin: { l: 64, r: 20, t: 24, b: 64 },
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("--text") },
    hoverlabel: {
      bgcolor: colour("--surface"), bordercolor: colour("--muted"), align: "left", font: { color: colour("--text"), size: 13 },
    },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: colour("--accent") },
    ...extra,
    xaxis: { ...axis(x), ...extra.xaxis }, yaxis: { ...axis(y), ...extra.yaxis },
  };
}

const CONFIG = {
  responsive: true, displaylogo: false, displayModeBar: "hover",
  // By name: Plotly's own choice has one that sends the figures to its makers.
  modeBarButtons: [["toImage", "zoom2d", "resetScale2d"]],
};

export function plot(holder, label, make) {
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", label);
  const draw = () => {
    const { traces, shape } = make();
    const paper = document.documentElement.classList.contains("paper");
    const size = paper ? { autosize: false, width: holder.clientWidth, height: holder.clientHeight } : { autosize: true };
    Plotly.react(holder, traces, { ...shape, ...size }, CONFIG);
  };
  redraws.push(draw);
  draw();
  return draw;
}
