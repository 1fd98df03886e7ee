// Section: the curves of all methods but the ablations.

import { curves } from "./curves.js";
import { isAblation, methods } from "./data.js";

export function tradeoff() {
  const shown = methods.filter((method) => !isAblation(method));
  if (!shown.length) return false;
  curves("tradeoff", shown);
  return true;
}
