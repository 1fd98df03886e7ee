// Elements of the page.

export const byId = (id) => document.getElementById(id);

/** An element; children are nodes or text, never markup, so that no name from the data is read as html. */
export function el(tag, attributes = {}, ...children) {
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

export function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, label]) => el("option", { value, selected: value === chosen }, label)));
}
