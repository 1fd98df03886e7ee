// The menu: a link per section, the one that is being read marked.

import { byId, el } from "./dom.js";

export function menu() {
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
