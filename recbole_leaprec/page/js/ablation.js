// Section: the curves of the references and of their ablations.

import { curves } from "./curves.js";
import { isAblation, methods, reference, references } from "./data.js";
import { byId } from "./dom.js";

export function ablation() {
  const parts = methods.filter(isAblation);
  if (!parts.length) return false;
  if (isAblation(reference)) {
    curves("ablation", parts);
    return true;
  }
  const groups = references
    .map(({ name, methods: own }) => [
      methods.find((method) => method.name === name), ...parts.filter((part) => own.includes(part.name)),
    ])
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
