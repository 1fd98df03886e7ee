// Section: the list of one user, by method and lambda.

import { bars } from "./bars.js";
import { data, K, NAMES } from "./data.js";
import { byId, el, options } from "./dom.js";
import { count, filled, fixed, plain } from "./format.js";
import { glide } from "./glide.js";
import { chips, isItem, title } from "./items.js";
import { lambdaSlider, startLambda, startMethod } from "./slider.js";
import { movement, why } from "./why.js";

export function users() {
  const explorer = data.explorer;
  if (!filled(explorer?.users) || !filled(explorer.methods)) return false;
  const named = new Map(explorer.methods.map((one) => [one.name, one]));
  const select = byId("user-select");
  const method = byId("user-method");
  const filter = byId("user-filter");
  const slider = lambdaSlider(byId("user-lambda"), byId("user-value"), () => show());
  byId("user-skl-name").textContent = NAMES.skl;

  function show() {
    const user = explorer.users[Number(select.value)];
    const name = method.value;
    const lists = (user.lists?.[name] ?? []).map(listed);
    const view = {
      user, name, lists, list: lists[slider.index] ?? [], rank: user.rank?.[name] ?? {}, target: String(user.target),
      lambda: slider.lambda, at: slider.index, plainAt: named.get(name).lambdas.indexOf(0),
    };
    showTiles(view);
    showList(view);
    showGone(view);
    bars(view);
    showHistory(user);
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
  function search() {
    const typed = filter.value.trim();
    const wanted = typed.toLowerCase();
    const chosen = select.value;
    const found = explorer.users
      .map((user, index) => [String(index), user])
      .filter(([, user]) => String(user.user).toLowerCase().includes(wanted));
    const size = (user) => count(user.history_length ?? user.history.length);
    options(select, found.map(([index, user]) => [index, `${user.user} (${size(user)} items)`]), chosen);
    select.disabled = !found.length;
    byId("user-view").hidden = byId("user-slide").hidden = !found.length;
    const some = wanted ? `${found.length} of ${explorer.users.length} users` : "";
    byId("user-none").textContent = found.length ? some : `No user's id has “${typed}” in it.`;
    changed();
  }

  options(method, [...named.keys()].map((name) => [name, name]), startMethod(explorer.methods));
  slider.over(named.get(method.value).lambdas, startLambda());
  filter.addEventListener("input", search);
  select.addEventListener("change", changed);
  method.addEventListener("change", () => {
    slider.over(named.get(method.value).lambdas);
    show();
  });
  byId("user-previous").addEventListener("click", () => step(-1));
  byId("user-next").addEventListener("click", () => step(1));
  search();
  return true;
}

/** The items of a list; 0 pads a short one. */
const listed = (ids) => (ids ?? []).map(String).filter((id) => id !== "0" || isItem(id));

const badge = (id, target) => (id === target ? el("span", { class: "badge" }, "★ the true next item") : null);

function showTiles({ user, name, list, rank, target, lambda, at, plainAt }) {
  byId("user-list-title").textContent = `The list of user ${user.user}: ${name}, lambda ${plain(lambda)}`;
  const skl = fixed(user.skl?.[name]?.[at]);
  byId("user-skl").textContent = skl;
  byId("user-brief").replaceChildren(`${NAMES.skl} `, el("b", {}, skl)); // in sight when the tiles are not
  byId("user-skl-own").textContent = plainAt >= 0 ? `own ranking ${fixed(user.skl?.[name]?.[plainAt])}` : "";
  const place = list.indexOf(target) + 1;
  byId("user-target-place").textContent = place ? `place ${place}` : "not in the list";
  byId("user-target").textContent = `${title(target)}${rank[target] ? `; place ${rank[target]} of the own ranking` : ""}`;
  const fresh = list.filter((id) => rank[id] > K).length;
  const moved = list.filter((id, index) => rank[id] <= K && rank[id] !== index + 1).length;
  byId("user-new").textContent = `${fresh} of ${list.length} new`;
  byId("user-moved").textContent = `${moved} of the others at another place`;
}

function showList({ user, list, rank, target, lambda }) {
  glide(byId("user-list"), list.map((id, index) => {
    const reason = why(id, list.slice(0, index), user.preference, rank[id], lambda);
    const [kind, word, rest] = movement(rank[id], index + 1);
    const before = rank[id] ? `place ${rank[id]} of the model's own ranking` : null;
    return el("li", { "data-item": id, "data-move": kind, class: id === target ? "target" : null },
      el("span", { class: "place" }, String(index + 1)),
      el("span", { class: "name" }, title(id), badge(id, target)),
      el("span", { class: `move ${kind}`, title: before }, el("b", {}, word), rest),
      el("span", { class: "detail" }, chips(id, reason.brings), el("span", { class: "why" }, reason.text)));
  }));
}

/** Those of the model's own first K that the list has not. */
function showGone({ list, rank, target }) {
  const gone = Object.keys(rank).filter((id) => rank[id] <= K && !list.includes(id)).sort((a, b) => rank[a] - rank[b]);
  byId("user-gone-none").textContent = gone.length
    ? `Of the ${K} first of the model's own ranking, ${gone.length === 1 ? "this one is" : `these ${gone.length} are`} gone.`
    : `Nothing: the ${K} first of the model's own ranking are all there.`;
  byId("user-gone").replaceChildren(...gone.map((id) => el("li", { "data-item": id, class: id === target ? "target" : null },
    el("small", {}, `was ${rank[id]}`), title(id), chips(id), badge(id, target))));
}

function showHistory(user) {
  const history = user.history.map(String).reverse();
  const length = user.history_length ?? history.length;
  byId("user-history-note").textContent = history.length < length
    ? `The last ${history.length} of ${count(length)} items, latest first.`
    : `All ${count(length)} items, latest first.`;
  byId("user-history").replaceChildren(...history.map((id) => el("li", {}, title(id), chips(id))));
}
