"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const K = data.k ?? 10;
  const NAMES = { hit: `HR@${K}`, ndcg: `nDCG@${K}`, skl: `S_KL@${K}`, ckl: `C_KL@${K}` };
  const LESS_IS_BETTER = new Set(["skl", "ckl", "seconds"]);
  const methods = data.methods ?? [];
  const reference = methods.find((method) => method.name === data.reference) ?? methods[0];
  // A study with several backbones has a reference for each; `reference` is the first, the one that the headline speaks of.
  const references = data.references ?? [];
  const several = references.length > 1;
  const isReference = (name) => name === reference?.name || references.some((one) => one.name === name);
  const ALPHA = 0.05;

  // ---------------------------------------------------------------- words and elements

  const byId = (id) => document.getElementById(id);
  const known = (value) => typeof value === "number" && Number.isFinite(value);
  const fixed = (value, digits = 4) => (known(value) ? value.toFixed(digits) : "–");
  const plain = (value) => (known(value) ? String(Number(value.toPrecision(6))) : "–");
  const count = (value) => (known(value) ? value.toLocaleString("en-GB") : "–");
  const share = (value) => `${Math.round(100 * value)} %`;
  const signed = (ratio) => (known(ratio) ? `${ratio < 0 ? "−" : "+"}${Math.abs(100 * ratio).toFixed(1)} %` : "–");
  const chance = (p) => (known(p) ? (p < 0.0001 ? "< 0.0001" : p.toFixed(4)) : "–");
  const seconds = (value) => (known(value) ? count(Number(value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0))) : "–");
  const change = (value, from) => (known(value) && known(from) && from !== 0 ? value / from - 1 : null);
  const atLambda = (point) => (known(point.lambda) ? `lambda ${plain(point.lambda)}` : "without lambda");
  const filled = (list) => Array.isArray(list) && list.length > 0;

  /** An element; children are nodes or text, never markup, so that no name from the data is read as html. */
  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "class") node.className = value;
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  /** Text for a hover label of Plotly, which knows some tags. */
  const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function options(select, entries, chosen) {
    select.replaceChildren(...entries.map(([value, label]) => el("option", { value, selected: value === chosen }, label)));
  }

  // ---------------------------------------------------------------- what to show of a method

  /** The index of the lambda nearest to the wanted one. */
  function nearest(lambdas, wanted) {
    let best = 0;
    lambdas.forEach((value, index) => {
      if (Math.abs(value - wanted) < Math.abs(lambdas[best] - wanted)) best = index;
    });
    return best;
  }

  /** The point that stands for the reference: the package's default lambda, 0.3, or the nearest that was measured. */
  function referencePoint() {
    const points = reference?.points ?? [];
    return points[nearest(points.map((point) => point.lambda ?? 0), 0.3)];
  }

  /** The models' own rankings, each once, with the methods that start from it. */
  function bases(among) {
    const found = new Map();
    for (const method of among) {
      if (!method.base) continue;
      const key = JSON.stringify([method.model, method.base.hit, method.base.ndcg, method.base.skl]);
      if (!found.has(key)) found.set(key, { model: method.model, base: method.base, methods: [] });
      found.get(key).methods.push(method.name);
    }
    return [...found.values()];
  }

  // ---------------------------------------------------------------- tables

  /**
   * A table that can be sorted by its headers.
   * Columns: {key, label, number}; rows: {attributes, cells: {key: {text, value, attributes}}}, the first column being the row's name.
   */
  function table(holder, caption, columns) {
    let rows = [];
    let sorted = null;
    const body = el("tbody");
    const heads = columns.map((column) =>
      el("th", { scope: "col", class: column.number ? "number" : null },
        el("button", { type: "button", onclick: () => sortBy(column) }, column.label)));
    holder.replaceChildren(el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), body));
    holder.setAttribute("role", "region");
    holder.setAttribute("aria-label", caption);
    holder.tabIndex = 0; // so that the keyboard can scroll it

    function sortBy(column) {
      // Numbers start with the best: most first, but for those of which less is better.
      const first = column.number && !LESS_IS_BETTER.has(column.key) ? -1 : 1;
      if (sorted?.key !== column.key) sorted = { key: column.key, direction: first };
      else if (sorted.direction === first) sorted.direction = -first;
      else sorted = null; // a third time: the order of the data
      draw();
    }

    function draw() {
      const order = [...rows];
      if (sorted) {
        const value = (row) => row.cells[sorted.key]?.value ?? row.cells[sorted.key]?.text;
        const missing = (row) => row.cells[sorted.key]?.text === "–";
        order.sort((a, b) => {
          if (missing(a) || missing(b)) return missing(a) - missing(b);
          const [x, y] = [value(a), value(b)];
          return sorted.direction * (known(x) && known(y) ? x - y : String(x).localeCompare(String(y)));
        });
      }
      heads.forEach((head, index) => {
        if (sorted?.key === columns[index].key) head.setAttribute("aria-sort", sorted.direction > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      body.replaceChildren(...order.map((row) => el("tr", row.attributes, ...columns.map((column, index) => {
        const cell = row.cells[column.key] ?? { text: "–" };
        const classes = [column.number ? "number" : "", cell.class ?? ""].join(" ").trim() || null;
        return el(index ? "td" : "th", { scope: index ? null : "row", class: classes, ...cell.attributes }, ...[cell.content ?? cell.text].flat());
      }))));
    }

    return (newRows) => {
      rows = newRows;
      draw();
    };
  }

  // ---------------------------------------------------------------- plots

  const redraws = []; // every plot again, in the colours of the scheme
  const probe = el("span", { hidden: true });
  document.body.append(probe);

  /** A CSS variable as a colour that Plotly understands. */
  function colour(variable) {
    probe.style.color = `var(${variable})`;
    return getComputedStyle(probe).color;
  }

  const SERIES = 8;
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "pentagon", "hexagon"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
  // Ablations are drawn with their reference and without the other methods: they go on from its look.
  const places = new Map();
  for (const group of [methods.filter((method) => method.group !== "ablation"), methods.filter((method) => method.group === "ablation")]) {
    const first = places.size ? (places.get(reference.name) ?? -1) + 1 : 0;
    group.forEach((method, index) => places.set(method.name, first + index));
  }
  function look(name) {
    const index = places.get(name) ?? 0;
    return { variable: `--series-${index % SERIES}`, symbol: SYMBOLS[index % SYMBOLS.length], dash: DASHES[index % DASHES.length] };
  }

  function layout(x, y, extra = {}) {
    const axis = (title) => ({
      title: { text: title, standoff: 10, font: { size: 13 } }, gridcolor: colour("--grid"), linecolor: colour("--line"), zeroline: false,
      showline: true, ticks: "outside", tickcolor: colour("--line"), ticklen: 4, automargin: true,
    });
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "closest",
      // A finger on a plot scrolls the page; a mouse zooms.
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      margin: { l: 64, r: 20, t: 24, b: 64 },
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("--text") },
      hoverlabel: { bgcolor: colour("--surface"), bordercolor: colour("--muted"), align: "left", font: { color: colour("--text"), size: 13 } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: colour("--accent") },
      ...extra,
      xaxis: { ...axis(x), ...extra.xaxis }, yaxis: { ...axis(y), ...extra.yaxis },
    };
  }

  const CONFIG = {
    responsive: true, displaylogo: false, displayModeBar: "hover",
    modeBarButtons: [["toImage", "zoom2d", "resetScale2d"]], // by name: Plotly's own choice has one that sends the figures to its makers
  };

  function plot(holder, label, make) {
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

  // ---------------------------------------------------------------- headline

  function headline() {
    const set = data.dataset;
    if (set) {
      byId("facts").append([
        set.name,
        known(set.users) && `${count(set.users)} users`,
        known(set.items) && `${count(set.items)} items`,
        known(set.interactions) && `${count(set.interactions)} interactions`,
        filled(set.categories) && `${count(set.categories.length)} categories`,
      ].filter(Boolean).join(" · "));
    }
    const point = referencePoint();
    const number = (value) => el("strong", {}, fixed(value));
    if (point) {
      const said = el("p", {}, `${reference.name} at ${atLambda(point)}: `);
      ["skl", "ndcg"].forEach((metric, index) => {
        said.append(`${index ? ", " : ""}${NAMES[metric]} `, number(point[metric]));
        if (known(reference.base?.[metric])) said.append(" against ", number(reference.base[metric]));
        if (!index && reference.base) said.append(" for the model's own ranking");
      });
      said.append(".");
      byId("lead").append(said);
    }
    const others = comparedAtOneLevel(point);
    if (others.length) {
      const better = others.filter((row) => row.value < row.reference_value);
      const clear = better.filter((row) => significance(row) < ALPHA);
      byId("lead").append(el("p", {},
        `At the same S_KL@${K} of ${plain(others[0].skl)}, its ${NAMES.ndcg} is higher than that of ${better.length} of ` +
        `${others.length} other ${others.length === 1 ? "method" : "methods"}${several ? " compared with it" : ""}, ` +
        `significantly so for ${clear.length} (p < ${ALPHA} after Holm's correction).`));
    }
  }

  /** Comparisons of the reference's nDCG with other methods', at the S_KL that is nearest to the point's. */
  function comparedAtOneLevel(point) {
    const rows = (data.comparisons ?? []).filter((row) =>
      row.reference === reference?.name && row.metric === "ndcg" && row.group !== "ablation" && known(row.value));
    if (!rows.length) return [];
    const levels = rows.map((row) => row.skl);
    const level = levels[nearest(levels, point?.skl ?? levels[0])];
    return rows.filter((row) => row.skl === level);
  }

  const significance = (row) => row.p_holm ?? row.p ?? 1;

  // ---------------------------------------------------------------- summary

  function summary() {
    if (!methods.length) return false;
    const metrics = ["hit", "ndcg", "skl", "ckl"];
    const fill = table(byId("summary-table"), "Each method and each model's own ranking", [
      { key: "method", label: "Method" },
      { key: "lambda", label: "lambda", number: true },
      ...metrics.map((key) => ({ key, label: NAMES[key], number: true })),
      { key: "ndcg_change", label: "nDCG change", number: true },
      { key: "skl_change", label: "S_KL change", number: true },
      { key: "seconds", label: "Seconds", number: true },
    ]);

    const point = referencePoint();
    const every = methods.flatMap((method) => method.points ?? []);
    const levels = every.map((entry) => entry.skl).filter(known);
    const bounds = [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1].filter((bound) => bound >= Math.min(...levels) && bound <= Math.max(...levels));
    const lambdas = [...new Set(every.map((entry) => entry.lambda).filter(known))].sort((a, b) => a - b);
    const choices = new Map();
    const group = (label, entries) => {
      const shown = entries.map(([key, text, said, pick]) => {
        choices.set(key, { said, pick });
        return el("option", { value: key }, text);
      });
      return shown.length ? el("optgroup", { label }, ...shown) : null;
    };
    const upTo = (bound, whose) => [
      `skl:${bound}`, `with ${NAMES.skl} at most ${whose ? fixed(bound) : plain(bound)}${whose ? `, as ${whose}` : ""}`,
      `Each method at its smallest lambda whose lists have ${NAMES.skl} of at most ${whose ? fixed(bound) : plain(bound)}` +
        `${whose ? `, that of ${whose}` : ""}.`,
      (points) => points.filter((entry) => known(entry.skl) && entry.skl <= bound + 1e-9).sort((a, b) => a.lambda - b.lambda)[0],
    ];
    const select = byId("summary-choice");
    select.append(...[
      group("As well calibrated", [
        ...(known(point?.skl) ? [upTo(point.skl, `${reference.name} at ${atLambda(point)}`)] : []),
        ...bounds.map((bound) => upTo(bound)),
      ]),
      group("The same lambda", lambdas.map((lam) => [
        `lambda:${lam}`, `at lambda ${plain(lam)}`,
        `Each method at lambda ${plain(lam)}. Methods use lambda differently: compare them at the same S_KL.`,
        (points) => points.find((entry) => entry.lambda === lam) ?? (points.length === 1 && !known(points[0].lambda) ? points[0] : undefined),
      ])),
    ].filter(Boolean));

    const cells = (values) => Object.fromEntries(metrics.map((metric) => {
      const [low, high] = [values[`${metric}_low`], values[`${metric}_high`]];
      const interval = known(low) && known(high) ? `${fixed(low)}–${fixed(high)}` : null;
      return [metric, { text: fixed(values[metric]), value: values[metric], attributes: { "data-metric": metric, "data-interval": interval } }];
    }));
    const own = bases(methods).map(({ model, base, methods: names }) => ({
      attributes: { class: "base", "data-method": model, "data-lambda": "base" },
      cells: {
        method: { text: model, content: [`${model}, own ranking`, el("small", {}, `base of ${names.join(", ")}`)] },
        ...cells(base),
      },
    }));

    function changed(value, from, metric) {
      const ratio = change(value, from);
      const better = metric === "skl" ? ratio < 0 : ratio > 0;
      return {
        text: signed(ratio), value: ratio, attributes: { "data-metric": `${metric}_change` },
        class: ratio === null || Math.abs(ratio) < 0.0005 ? null : better ? "better" : "worse",
      };
    }

    function show() {
      const { said, pick } = choices.get(select.value);
      let missing = 0;
      const rows = methods.filter((method) => filled(method.points)).map((method) => {
        const chosen = pick(method.points);
        missing += !chosen;
        const about = [method.model, method.reranker, method.group === "ablation" && "ablation", method.seeds > 1 && `${method.seeds} seeds`];
        const name = [method.name, el("small", {}, about.filter(Boolean).join(" · "))];
        const attributes = {
          class: isReference(method.name) ? "reference" : null, "data-method": method.name,
          "data-lambda": known(chosen?.lambda) ? plain(chosen.lambda) : "",
        };
        if (!chosen) return { attributes, cells: { method: { text: method.name, content: name }, ...cells({}) } };
        return {
          attributes,
          cells: {
            method: { text: method.name, content: name },
            lambda: { text: plain(chosen.lambda), value: chosen.lambda },
            ...cells(chosen),
            ndcg_change: changed(chosen.ndcg, method.base?.ndcg, "ndcg"),
            skl_change: changed(chosen.skl, method.base?.skl, "skl"),
            seconds: { text: seconds(chosen.seconds), value: chosen.seconds, attributes: { "data-metric": "seconds" } },
          },
        };
      });
      for (const metric of metrics) {
        const values = rows.map((row) => row.cells[metric].value).filter(known);
        const best = LESS_IS_BETTER.has(metric) ? Math.min(...values) : Math.max(...values);
        if (values.length > 1) for (const row of rows) if (row.cells[metric].value === best) row.cells[metric].class = "best";
      }
      fill([...own, ...rows]);
      const ranges = rows.some((row) => row.cells.ndcg.attributes["data-interval"]);
      byId("summary-note").textContent = [
        said, "The best reranked value of a column is bold.", ranges && "Below each value: its 95 % interval.",
        missing && `– : not measured, or no lambda gets there.`,
      ].filter(Boolean).join(" ");
    }

    if (!choices.size) byId("summary-choice").closest(".controls").remove();
    if (choices.size) {
      select.addEventListener("change", show);
      show();
    } else fill(own);
    return true;
  }

  // ---------------------------------------------------------------- curves

  const SVG = "http://www.w3.org/2000/svg";
  const SHAPES = {
    circle: "M18 9m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0", square: "M14 5h8v8h-8z", diamond: "M18 3.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
    "triangle-up": "M18 4l5 9h-10z", cross: "M16 4h4v3h3v4h-3v3h-4v-3h-3v-4h3z", "triangle-down": "M18 14l-5 -9h10z",
    pentagon: "M18 4l5 3.8l-1.9 6h-6.2l-1.9 -6z", hexagon: "M15.5 4.5h5l2.7 4.5l-2.7 4.5h-5l-2.7 -4.5z",
    star: "M18 2.5l1.9 4.3l4.6 .4l-3.5 3.1l1.1 4.6l-4.1 -2.5l-4.1 2.5l1.1 -4.6l-3.5 -3.1l4.6 -.4z",
  };
  const STROKES = { solid: "", dash: "7 3", dot: "2 3", dashdot: "7 3 2 3", longdash: "12 4" };

  /** A piece of a curve for the legend. */
  function sample({ variable, symbol, dash }, line = true) {
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

  function hover(name, values, where) {
    const lines = ["ndcg", "hit", "skl", "ckl"].filter((metric) => known(values[metric])).map((metric) => {
      const [low, high] = [values[`${metric}_low`], values[`${metric}_high`]];
      return `${NAMES[metric]} ${fixed(values[metric])}${known(low) && known(high) ? ` (${fixed(low)} to ${fixed(high)})` : ""}`;
    });
    if (known(values.seconds)) lines.push(`${seconds(values.seconds)} seconds`);
    return [`<b>${escaped(name)}</b>`, escaped(where), ...lines].join("<br>");
  }

  function curves(section, shown) {
    const holder = byId(section).querySelector(".curves");
    const hidden = new Set();
    let bars = false;
    const drawn = shown.map((method) => ({
      ...method, look: look(method.name),
      points: (method.points ?? []).filter((point) => known(point.skl)).sort((a, b) => (a.lambda ?? 0) - (b.lambda ?? 0)),
    }));
    const own = bases(shown);
    const ranges = drawn.some((method) => method.points.some((point) => known(point.ndcg_low)));
    const redraw = () => plots.forEach((draw) => draw());
    const box = (text, checked, picture, apply, attributes = {}) => {
      const input = el("input", { type: "checkbox", onchange: (event) => { apply(event.target.checked); redraw(); } });
      input.checked = checked;
      return el("label", attributes, input, picture, text);
    };
    const legend = el("fieldset", { class: "legend" }, el("legend", {}, "Curves to show"),
      ...drawn.filter((method) => method.points.length).map((method) => box(method.name, true, sample(method.look), (on) => (on ? hidden.delete(method.name) : hidden.add(method.name)))),
      own.length ? el("span", { class: "entry" }, sample({ variable: "--text", symbol: "star" }, false), "a model's own ranking") : null,
      ranges ? box("95 % intervals", bars, null, (on) => (bars = on), { class: "aside" }) : null);
    const panels = ["ndcg", "hit"].map((metric) => ({ metric, panel: el("div", { class: "plot", id: `${section}-${metric}` }) }));
    holder.append(legend, el("div", { class: "plots" }, ...panels.map(({ panel }) => panel)));

    const plots = panels.map(({ metric, panel }) => plot(panel, `${NAMES[metric]} against ${NAMES.skl}; all points are in the table below`, () => {
      const traces = drawn.map((method) => ({
        type: "scatter", mode: "lines+markers", cliponaxis: false, name: escaped(method.name), visible: !hidden.has(method.name),
        x: method.points.map((point) => point.skl), y: method.points.map((point) => point[metric]),
        hovertext: method.points.map((point) => hover(method.name, point, atLambda(point))), hovertemplate: "%{hovertext}<extra></extra>",
        line: { color: colour(method.look.variable), dash: method.look.dash, width: isReference(method.name) ? 3 : 2 },
        marker: { color: colour(method.look.variable), symbol: method.look.symbol, size: 8 },
        error_y: {
          type: "data", symmetric: false, visible: bars, thickness: 1, width: 3, color: colour(method.look.variable),
          array: method.points.map((point) => (point[`${metric}_high`] ?? point[metric]) - point[metric]),
          arrayminus: method.points.map((point) => point[metric] - (point[`${metric}_low`] ?? point[metric])),
        },
      }));
      traces.push(...own.map(({ model, base, methods: names }) => ({
        type: "scatter", mode: "markers", name: escaped(model), x: [base.skl], y: [base[metric]],
        visible: names.some((name) => !hidden.has(name)),
        hovertext: [hover(`${model}, own ranking`, base, `without reranking; base of ${names.join(", ")}`)], hovertemplate: "%{hovertext}<extra></extra>",
        // One model's star has its method's colour; one that several methods share has none.
        marker: { symbol: "star", size: 15, color: colour(names.length === 1 ? look(names[0]).variable : "--text"), line: { width: 1.5, color: colour("--surface") } },
      })));
      return { traces, shape: layout(`${NAMES.skl}, less is better`, NAMES[metric], { xaxis: { rangemode: "tozero" } }) };
    }));

    const rows = el("div", { class: "figure" });
    const number = (key, label) => ({ key, label, number: true });
    table(rows, "All points of the curves", [
      { key: "method", label: "Method" }, number("lambda", "lambda"), ...["hit", "ndcg", "skl", "ckl"].map((key) => number(key, NAMES[key])),
    ])(drawn.flatMap((method) => method.points.map((point) => ({
      cells: {
        method: { text: method.name }, lambda: { text: plain(point.lambda), value: point.lambda },
        ...Object.fromEntries(["hit", "ndcg", "skl", "ckl"].map((key) => [key, { text: fixed(point[key]), value: point[key] }])),
      },
    }))));
    holder.append(el("details", {}, el("summary", {}, "All points as a table"), rows));
  }

  function tradeoff() {
    const shown = methods.filter((method) => method.group !== "ablation");
    if (!shown.length) return false;
    curves("tradeoff", shown);
    return true;
  }

  function ablation() {
    const parts = methods.filter((method) => method.group === "ablation");
    if (!parts.length) return false;
    if (reference.group === "ablation") {
      curves("ablation", parts);
      return true;
    }
    const groups = references
      .map(({ name, methods: own }) => [methods.find((method) => method.name === name), ...parts.filter((part) => own.includes(part.name))])
      .filter((group) => group.length > 1);
    const alone = parts.filter((part) => !groups.some((group) => group.includes(part))); // of a study whose reference is not done yet
    const only = groups.length === 1 && !alone.length;
    const names = (list) => list.map((method) => method.name).join(", ");
    byId("ablation-note").textContent = [
      ...groups.map(([whole, ...own]) => `${whole.name} with one part taken away or replaced at a time${only ? "" : `: ${names(own)}`}.`),
      ...(alone.length ? [`The reference of ${names(alone)} is not measured yet.`] : []),
    ].join(" ");
    curves("ablation", [...new Set([...groups.flat(), ...alone])]); // a part that has no backbone belongs to every reference
    return true;
  }

  // ---------------------------------------------------------------- comparison

  function comparison() {
    if (!filled(data.comparisons)) return false;
    const name = several ? "the reference" : data.reference ?? "the reference";
    byId("comparison-note").textContent =
      `Every method against ${name}${several ? " that its row names" : ""}, both at the same S_KL. ` +
      `The difference is the method's value less that of ${name}. ` +
      `Beside p stands p after Holm's correction for the number of tests; a difference is called significant where that is below ${ALPHA}.`;
    const fill = table(byId("comparison-table"), `Methods against ${several ? "their references" : name} at the same S_KL`, [
      { key: "method", label: "Method" }, ...(several ? [{ key: "against", label: "Reference" }] : []),
      { key: "level", label: NAMES.skl, number: true }, { key: "metric", label: "Metric" },
      { key: "value", label: "Value", number: true }, { key: "reference", label: several ? "Reference's value" : name, number: true },
      { key: "difference", label: "Difference", number: true }, { key: "p", label: "p", number: true },
      { key: "p_holm", label: "p, Holm", number: true }, { key: "verdict", label: "Verdict" },
    ]);
    const verdict = (row) => {
      if (!known(row.value) || !known(row.reference_value)) return ["–", null];
      if (significance(row) >= ALPHA) return ["≈ not significant", null];
      return row.value < row.reference_value ? ["▼ significantly lower", "significant worse"] : ["▲ significantly higher", "significant better"];
    };
    const metrics = [...new Set(data.comparisons.map((row) => row.metric))];
    const select = byId("comparison-metric");
    options(select, [...metrics.map((metric) => [metric, NAMES[metric] ?? metric]), ["", "all"]], metrics[0]);
    const show = () => fill(data.comparisons.filter((row) => !select.value || row.metric === select.value).map((row) => {
      const [words, kind] = verdict(row);
      const ratio = change(row.value, row.reference_value);
      return {
        attributes: { "data-method": row.method, "data-skl": plain(row.skl), "data-metric": row.metric },
        cells: {
          method: { text: row.method, content: row.group === "ablation" ? [row.method, el("span", { class: "aside" }, " ablation")] : row.method },
          against: { text: row.reference }, level: { text: fixed(row.skl), value: row.skl }, metric: { text: NAMES[row.metric] ?? row.metric },
          value: { text: fixed(row.value), value: row.value }, reference: { text: fixed(row.reference_value), value: row.reference_value },
          difference: { text: signed(ratio), value: ratio }, p: { text: chance(row.p), value: row.p },
          p_holm: { text: chance(row.p_holm), value: row.p_holm }, verdict: { text: words, class: kind },
        },
      };
    }));
    select.addEventListener("change", show);
    if (metrics.length < 2) byId("comparison-controls").remove();
    show();
    return true;
  }

  // ---------------------------------------------------------------- times

  function times() {
    if (!filled(data.times)) return false;
    const base = data.times.find((row) => row.method === reference?.name)?.reranking;
    const ratio = (row) => (known(base) && base > 0 && known(row.reranking) ? row.reranking / base : null);
    const digits = (value) => (value < 10 ? value.toFixed(1) : count(Math.round(value)));
    table(byId("times-table"), "Times and complexity", [
      { key: "method", label: "Method" }, { key: "reranker", label: "Reranker" }, { key: "training", label: "Training, s", number: true },
      { key: "seconds", label: "Reranking, s", number: true }, { key: "lambdas", label: "Lambdas", number: true },
      { key: "ratio", label: `Times ${reference?.name ?? "the reference"}`, number: true },
      { key: "complexity", label: "Complexity, published" }, { key: "here", label: "Complexity, here" },
    ])(data.times.map((row) => ({
      attributes: { "data-method": row.method, class: isReference(row.method) ? "reference" : null },
      cells: {
        method: { text: row.method }, reranker: { text: row.reranker ?? "–" },
        training: { text: seconds(row.training), value: row.training, attributes: { "data-metric": "training" } },
        seconds: { text: seconds(row.reranking), value: row.reranking, attributes: { "data-metric": "reranking" } },
        lambdas: { text: count(row.lambdas), value: row.lambdas },
        ratio: { text: ratio(row) === null ? "–" : `${digits(ratio(row))}×`, value: ratio(row) },
        complexity: { text: row.complexity ?? "–", content: row.complexity ? el("code", {}, row.complexity) : null },
        here: { text: row.here ?? "–", content: row.here ? el("code", {}, row.here) : null },
      },
    })));
    return true;
  }

  // ---------------------------------------------------------------- density

  /** A range input over the lambdas of whichever method is chosen; keeps near its lambda when the method changes. */
  function lambdaSlider(input, output, onchange) {
    let lambdas = [0];
    const say = () => {
      const text = `lambda ${plain(lambdas[input.valueAsNumber])}`;
      output.textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    input.addEventListener("input", () => {
      say();
      onchange();
    });
    return {
      over(newLambdas, wanted = lambdas[input.valueAsNumber]) {
        lambdas = newLambdas;
        input.max = lambdas.length - 1;
        input.value = nearest(lambdas, wanted ?? 0);
        input.disabled = lambdas.length < 2;
        say();
      },
      get index() { return input.valueAsNumber; },
      get lambda() { return lambdas[input.valueAsNumber]; },
    };
  }

  const startLambda = () => referencePoint()?.lambda ?? 0.3;
  const startMethod = (list) => (list.find((method) => method.name === reference?.name) ?? list[0]).name;

  function density() {
    if (!filled(data.density?.methods) || !filled(data.density.grid)) return false;
    const { grid } = data.density;
    const named = new Map(data.density.methods.map((method) => [method.name, method]));
    const select = byId("density-method");
    options(select, [...named.keys()].map((name) => [name, name]), startMethod(data.density.methods));
    let draw = () => {};
    const slider = lambdaSlider(byId("density-lambda"), byId("density-value"), () => draw());
    slider.over(named.get(select.value).lambdas, startLambda());

    const picture = plot(byId("density-plot"), `Density of ${NAMES.skl} over users; the means are in the text above`, () => {
      const method = named.get(select.value);
      const index = slider.index;
      const first = nearest(method.lambdas, 0);
      const style = look(method.name);
      const ink = colour(style.variable);
      const line = (at, extra) => ({
        type: "scatter", mode: "lines", x: grid, y: method.curves[at], name: `lambda ${plain(method.lambdas[at])}`,
        hovertemplate: `lambda ${plain(method.lambdas[at])}<br>${NAMES.skl} %{x:.3f}<br>density %{y:.3f}<extra></extra>`, ...extra,
      });
      const traces = [line(first, { line: { color: colour("--muted"), width: 1.5, dash: "dot" } })];
      if (index !== first) {
        traces.push(line(index, { line: { color: ink, width: 2.5 }, fill: "tozeroy", fillcolor: ink.replace("rgb(", "rgba(").replace(")", ", 0.16)") }));
      }
      const top = Math.max(...traces.flatMap((trace) => trace.y).filter(known));
      const mean = (at, ink_) => ({
        type: "line", xref: "x", yref: "paper", x0: method.skl[at], x1: method.skl[at], y0: 0, y1: 1, line: { color: ink_, width: 1, dash: "dash" },
      });
      const note = (at, text, ink_, y) => ({
        x: method.skl[at], y, yref: "paper", text, showarrow: false, font: { color: ink_, size: 12 },
        // At the left half the words stand right of the line, else left, and so stay inside.
        xanchor: method.skl[at] < grid[grid.length - 1] / 2 ? "left" : "right", xshift: method.skl[at] < grid[grid.length - 1] / 2 ? 5 : -5, yanchor: "top",
      });
      const drawn = index === first ? [first] : [first, index];
      const marked = drawn.filter((at) => known(method.skl?.[at]));
      return {
        traces,
        shape: layout(`${NAMES.skl} of a user's list`, "density", {
          xaxis: { range: [0, grid[grid.length - 1]] }, yaxis: { range: [0, 1.12 * top] },
          shapes: marked.map((at) => mean(at, at === index ? ink : colour("--muted"))),
          annotations: marked.map((at) => note(at, `mean, lambda ${plain(method.lambdas[at])}`, at === index ? ink : colour("--muted"), at === first && drawn.length > 1 ? 0.9 : 1)),
        }),
      };
    });
    draw = () => {
      picture();
      say();
    };
    function say() {
      const method = named.get(select.value);
      byId("density-figures").replaceChildren(
        `${method.name}, lambda ${plain(slider.lambda)}: mean ${NAMES.ndcg} `, el("strong", { id: "density-ndcg" }, fixed(method.ndcg?.[slider.index])),
        `, mean ${NAMES.skl} `, el("strong", { id: "density-skl" }, fixed(method.skl?.[slider.index])), ".");
    }
    select.addEventListener("change", () => {
      slider.over(named.get(select.value).lambdas);
      draw();
    });
    say();
    return true;
  }

  // ---------------------------------------------------------------- shift

  function shift() {
    const points = data.shift?.points;
    if (!filled(points)) return false;
    const [first, last] = [points[0], points[points.length - 1]];
    byId("shift-note").textContent =
      `How far a user's category mix moves with time: the KL divergence between two windows of ${data.shift.window} items, by the interval, that is, ` +
      `how many items later the second one starts; at 0 the two are the same, below ${data.shift.window} they overlap. ` +
      `From interval ${plain(first.interval)} to ${plain(last.interval)} it goes from ${fixed(first.kl)} to ${fixed(last.kl)}.`;
    plot(byId("shift-plot"), byId("shift-note").textContent, () => ({
      traces: [{
        type: "scatter", mode: "lines+markers", x: points.map((point) => point.interval), y: points.map((point) => point.kl),
        hovertext: points.map((point) => `interval ${plain(point.interval)}<br>KL ${fixed(point.kl)}${known(point.users) ? `<br>${count(point.users)} users` : ""}`),
        hovertemplate: "%{hovertext}<extra></extra>", line: { color: colour("--series-0"), width: 2.5 }, marker: { size: 7 },
      }],
      shape: layout("interval, items", "KL divergence", { yaxis: { rangemode: "tozero" } }),
    }));
    return true;
  }

  // ---------------------------------------------------------------- users

  function users() {
    const explorer = data.explorer;
    if (!filled(explorer?.users) || !filled(explorer.methods)) return false;
    const categories = data.dataset?.categories ?? [];
    const C = categories.length || explorer.users[0].preference.length;
    const category = (index) => categories[index] ?? `category ${index}`;
    const items = data.items ?? {};
    const title = (id) => items[id]?.name ?? `item ${id}`;
    const own = (id) => items[id]?.categories ?? [];
    const named = new Map(explorer.methods.map((method) => [method.name, method]));
    const select = byId("user-select");
    const method = byId("user-method");
    const filter = byId("user-filter");
    byId("user-skl-name").textContent = NAMES.skl;

    /** An item counts 1/n for each of its n categories, one without any equally for all; a list is the mean of its items. */
    function mix(ids) {
      const sum = new Array(C).fill(0);
      for (const id of ids) {
        const its = own(id);
        if (its.length) for (const index of its) sum[index] += 1 / its.length / ids.length;
        else for (let index = 0; index < C; index += 1) sum[index] += 1 / C / ids.length;
      }
      return sum;
    }

    const chips = (id, brings) => el("span", { class: "chips" },
      ...(own(id).length
        ? own(id).map((index) => el("span", { class: index === brings ? "chip brings" : "chip" }, category(index)))
        : [el("span", { class: "chip" }, "no category")]));

    /** What an item is in the list for: the category of its own that the items above it are most short of, or its relevance. */
    function why(id, above, preference, rank, lambda) {
      const place = rank ? `: place ${rank} of the model's own ranking` : "";
      if (lambda === 0) return { text: `by relevance alone${place}` };
      const before = mix(above);
      let most = null;
      for (const index of own(id)) {
        const short = preference[index] - before[index];
        // Shares are said in whole per cent: less than one is no reason.
        const told = Math.round(100 * preference[index]) > Math.round(100 * before[index]);
        if (told && (most === null || short > most.short)) most = { index, short };
      }
      if (!most) return { text: `kept for relevance${place}` };
      const there = above.length ? `${share(before[most.index])} of the list above` : "nothing above it yet";
      return { text: `brings ${category(most.index)}: ${share(preference[most.index])} of the recent mix, ${there}`, brings: most.index };
    }

    function movement(rank, place) {
      if (!rank) return ["same", "", ""];
      if (rank > K) return ["new", "+ new", `, was ${count(rank)}`];
      if (rank > place) return ["up", "▲ up", ` from ${rank}`];
      if (rank < place) return ["down", "▼ down", ` from ${rank}`];
      return ["same", "", `= place ${rank}, as before`];
    }

    const view = byId("user-view");
    const slider = lambdaSlider(byId("user-lambda"), byId("user-value"), () => show());

    function show() {
      const user = explorer.users[Number(select.value)];
      const name = method.value;
      const ids = (at) => (user.lists?.[name]?.[at] ?? []).map(String).filter((id) => id !== "0" || items[id]); // 0 pads a short list
      const list = ids(slider.index);
      const rank = user.rank?.[name] ?? {};
      const target = String(user.target);
      const lambda = slider.lambda;
      const plainAt = named.get(name).lambdas.indexOf(0);

      byId("user-list-title").textContent = `The list of user ${user.user}: ${name}, lambda ${plain(lambda)}`;
      byId("user-skl").textContent = fixed(user.skl?.[name]?.[slider.index]);
      byId("user-brief").replaceChildren(`${NAMES.skl} `, el("b", {}, byId("user-skl").textContent)); // in sight when the tiles are not
      byId("user-skl-own").textContent = plainAt >= 0 ? `own ranking ${fixed(user.skl?.[name]?.[plainAt])}` : "";
      const place = list.indexOf(target) + 1;
      byId("user-target-place").textContent = place ? `place ${place}` : "not in the list";
      byId("user-target").textContent = `${title(target)}${rank[target] ? `; place ${rank[target]} of the own ranking` : ""}`;
      const fresh = list.filter((id) => rank[id] > K).length;
      const moved = list.filter((id, index) => rank[id] <= K && rank[id] !== index + 1).length;
      byId("user-new").textContent = `${fresh} of ${list.length} new`;
      byId("user-moved").textContent = `${moved} of the others at another place`;

      rows(byId("user-list"), list.map((id, index) => {
        const reason = why(id, list.slice(0, index), user.preference, rank[id], lambda);
        const [kind, word, rest] = movement(rank[id], index + 1);
        return el("li", { "data-item": id, "data-move": kind, class: id === target ? "target" : null },
          el("span", { class: "place" }, String(index + 1)),
          el("span", { class: "name" }, title(id), id === target ? el("span", { class: "badge" }, "★ the true next item") : null),
          el("span", { class: `move ${kind}`, title: rank[id] ? `place ${rank[id]} of the model's own ranking` : null }, el("b", {}, word), rest),
          el("span", { class: "detail" }, chips(id, reason.brings), el("span", { class: "why" }, reason.text)));
      }));

      const gone = Object.keys(rank).filter((id) => rank[id] <= K && !list.includes(id)).sort((a, b) => rank[a] - rank[b]);
      byId("user-gone-none").textContent = gone.length
        ? `Of the ${K} first of the model's own ranking, ${gone.length === 1 ? "this one is" : `these ${gone.length} are`} gone.`
        : `Nothing: the ${K} first of the model's own ranking are all there.`;
      byId("user-gone").replaceChildren(...gone.map((id) => el("li", { "data-item": id, class: id === target ? "target" : null },
        el("small", {}, `was ${rank[id]}`), title(id), chips(id), id === target ? el("span", { class: "badge" }, "★ the true next item") : null)));

      showMix(user, name, list, ids);
      const history = user.history.map(String).reverse();
      const length = user.history_length ?? history.length;
      byId("user-history-note").textContent = history.length < length ? `The last ${history.length} of ${count(length)} items, latest first.` : `All ${count(length)} items, latest first.`;
      byId("user-history").replaceChildren(...history.map((id) => el("li", {}, title(id), chips(id))));
    }

    /** Bars in an order that does not depend on lambda, so that they grow and shrink in their places. */
    function showMix(user, name, list, ids) {
      const now = mix(list);
      const ever = new Set((user.lists?.[name] ?? []).flatMap((_, at) => ids(at)).flatMap((id) => own(id)));
      const all = [...new Array(C).keys()];
      const shown = all.filter((index) => user.preference[index] >= 0.005 || ever.has(index)).sort((a, b) => user.preference[b] - user.preference[a] || a - b);
      const widest = Math.max(0.01, ...shown.map((index) => user.preference[index]), ...shown.map((index) => now[index]));
      const key = `${user.user} ${name}`;
      const holder = byId("user-mix");
      if (holder.dataset.key !== key) {
        holder.dataset.key = key;
        const bar = (kind) => el("span", { class: "share", role: "cell" },
          el("span", { class: "track" }, el("i", { class: kind })), el("span", { class: "value" }));
        holder.replaceChildren(...shown.map((index) => el("div", { class: "mix", role: "row", "data-category": category(index) },
          el("span", { role: "rowheader" }, category(index)), bar("recent"), bar("list"))));
      }
      [...holder.children].forEach((row, at) => {
        const index = shown[at];
        [user.preference[index], now[index]].forEach((value, which) => {
          const cell = row.children[1 + which];
          cell.querySelector("i").style.width = `${(100 * value) / widest}%`;
          cell.querySelector(".value").textContent = share(value);
        });
      });
      const rest = C - shown.length;
      byId("user-mix-rest").textContent = rest ? `${rest} more ${rest === 1 ? "category is" : "categories are"} in neither.` : "";
    }

    /** New rows for a list; those that stay glide from their old place to the new one, unless less motion is wanted. */
    function rows(holder, fresh) {
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const before = new Map([...holder.children].map((row) => [row.dataset.item, row.getBoundingClientRect().top]));
      const top = holder.getBoundingClientRect().top;
      holder.replaceChildren(...fresh);
      if (still || !before.size) return;
      const shifted = holder.getBoundingClientRect().top - top;
      for (const row of fresh) {
        const old = before.get(row.dataset.item);
        if (old === undefined) row.animate([{ opacity: 0.2 }, { opacity: 1 }], { duration: 300, easing: "ease-out" });
        else {
          const by = old + shifted - row.getBoundingClientRect().top;
          if (Math.abs(by) > 1) row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 250, easing: "ease-out" });
        }
      }
    }

    function step(by) {
      const next = select.selectedIndex + by;
      if (next < 0 || next >= select.options.length) return;
      select.selectedIndex = next;
      changed();
    }

    function changed() {
      byId("user-previous").disabled = select.selectedIndex <= 0;
      byId("user-next").disabled = select.selectedIndex >= select.options.length - 1;
      if (select.options.length) show();
    }

    /** Only the users whose id has the typed text; the chosen one stays if it is among them. */
    function find() {
      const wanted = filter.value.trim().toLowerCase();
      const chosen = select.value;
      const found = explorer.users.map((user, index) => [String(index), user]).filter(([, user]) => String(user.user).toLowerCase().includes(wanted));
      options(select, found.map(([index, user]) => [index, `${user.user} (${count(user.history_length ?? user.history.length)} items)`]), chosen);
      select.disabled = !found.length;
      view.hidden = byId("user-slide").hidden = !found.length;
      byId("user-none").textContent = found.length ? (wanted ? `${found.length} of ${explorer.users.length} users` : "") : `No user's id has “${filter.value.trim()}” in it.`;
      changed();
    }

    options(method, [...named.keys()].map((name) => [name, name]), startMethod(explorer.methods));
    slider.over(named.get(method.value).lambdas, startLambda());
    filter.addEventListener("input", find);
    select.addEventListener("change", changed);
    method.addEventListener("change", () => {
      slider.over(named.get(method.value).lambdas);
      show();
    });
    byId("user-previous").addEventListener("click", () => step(-1));
    byId("user-next").addEventListener("click", () => step(1));
    find();
    return true;
  }

  // ---------------------------------------------------------------- the page

  function menu() {
    const links = new Map();
    for (const section of document.querySelectorAll("main > section")) {
      const link = el("a", { href: `#${section.id}` }, section.querySelector("h2").dataset.menu);
      links.set(section, link);
      byId("menu").append(el("li", {}, link));
    }
    // The section at the top third of the window is the one that is being read.
    const seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const link = links.get(target);
        if (!isIntersecting) link.removeAttribute("aria-current");
        else {
          link.setAttribute("aria-current", "true");
          const list = byId("menu");
          list.scrollLeft = link.parentElement.offsetLeft - list.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
        }
      }
    }, { rootMargin: "-30% 0px -69% 0px" });
    for (const section of links.keys()) seen.observe(section);
  }

  function scheme() {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const button = byId("theme");
    const root = document.documentElement;
    let chosen = null; // until the button is pressed, as the system has it
    const apply = (forced = chosen) => {
      root.style.colorScheme = forced ?? "";
      const dark = (forced ?? (system.matches ? "dark" : "light")) === "dark";
      button.textContent = dark ? "Light" : "Dark";
      button.setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
      root.dataset.scheme = dark ? "dark" : "light";
      redraws.forEach((draw) => draw());
    };
    button.addEventListener("click", () => {
      chosen = root.dataset.scheme === "dark" ? "light" : "dark";
      apply();
    });
    system.addEventListener("change", () => apply());
    addEventListener("beforeprint", () => {
      root.classList.add("paper");
      apply("light");
    });
    addEventListener("afterprint", () => {
      root.classList.remove("paper");
      apply();
    });
    return apply;
  }

  function footer() {
    const versions = Object.entries(data.versions ?? {}).map(([name, version]) => `${name} ${version}`);
    byId("footer").textContent = [data.made && `Made ${data.made}`, ...versions].filter(Boolean).join(" · ");
  }

  headline();
  const sections = { summary, tradeoff, ablation, comparison, times, density, shift, users };
  scheme()(); // the colours first, so that plots are drawn once
  for (const [id, draw] of Object.entries(sections)) if (!draw()) byId(id).remove();
  menu();
  footer();
})();
