// Section: how long each method takes.

import { data, isReference, reference } from "./data.js";
import { byId, el } from "./dom.js";
import { count, filled, known, seconds } from "./format.js";
import { table } from "./table.js";

export function times() {
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
