// Which of the measured points stand for a method.

import { reference } from "./data.js";

/** The index of the lambda nearest to the wanted one. */
export function nearest(lambdas, wanted) {
  let best = 0;
  lambdas.forEach((value, index) => {
    if (Math.abs(value - wanted) < Math.abs(lambdas[best] - wanted)) best = index;
  });
  return best;
}

/** The point that stands for the reference: the package's default lambda, 0.3, or the nearest that was measured. */
export function referencePoint() {
  const points = reference?.points ?? [];
  return points[nearest(points.map((point) => point.lambda ?? 0), 0.3)];
}

/** The models' own rankings, each once, with the methods that start from it. */
export function bases(among) {
  const found = new Map();
  for (const method of among) {
    if (!method.base) continue;
    const key = JSON.stringify([method.model, method.base.hit, method.base.ndcg, method.base.skl]);
    if (!found.has(key)) found.set(key, { model: method.model, base: method.base, methods: [] });
    found.get(key).methods.push(method.name);
  }
  return [...found.values()];
}
