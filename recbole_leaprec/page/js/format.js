// Numbers as text. What is not known is a dash.

export const known = (value) => typeof value === "number" && Number.isFinite(value);
export const fixed = (value, digits = 4) => (known(value) ? value.toFixed(digits) : "–");
export const plain = (value) => (known(value) ? String(Number(value.toPrecision(6))) : "–");
export const count = (value) => (known(value) ? value.toLocaleString("en-GB") : "–");
export const share = (value) => `${Math.round(100 * value)} %`;
export const signed = (ratio) => (known(ratio) ? `${ratio < 0 ? "−" : "+"}${Math.abs(100 * ratio).toFixed(1)} %` : "–");
export const chance = (p) => (known(p) ? (p < 0.0001 ? "< 0.0001" : p.toFixed(4)) : "–");
export const seconds = (value) => (known(value) ? count(Number(value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0))) : "–");
export const change = (value, from) => (known(value) && known(from) && from !== 0 ? value / from - 1 : null);
export const atLambda = (point) => (known(point.lambda) ? `lambda ${plain(point.lambda)}` : "without lambda");
export const filled = (list) => Array.isArray(list) && list.length > 0;

/** Text for a hover label of Plotly, which knows some tags. */
export const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
