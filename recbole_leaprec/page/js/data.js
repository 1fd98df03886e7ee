// The figures of the report, and what all sections ask of them.

export const data = JSON.parse(document.getElementById("data").textContent);
export const K = data.k ?? 10;
export const NAMES = { hit: `HR@${K}`, ndcg: `nDCG@${K}`, skl: `S_KL@${K}`, ckl: `C_KL@${K}` };
export const METRICS = Object.keys(NAMES);
export const LESS_IS_BETTER = new Set(["skl", "ckl", "seconds"]);
export const methods = data.methods ?? [];
export const reference = methods.find((method) => method.name === data.reference) ?? methods[0];
// A study with several backbones has a reference for each; `reference` is the first, the one that the headline speaks of.
export const references = data.references ?? [];
export const several = references.length > 1;
export const isAblation = (one) => one.group === "ablation";
export const isReference = (name) => name === reference?.name || references.some((one) => one.name === name);
