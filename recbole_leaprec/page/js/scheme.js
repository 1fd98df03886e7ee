// Light or dark: as the system has it, as the button says, and light on paper.

import { byId } from "./dom.js";
import { redraws } from "./plot.js";

export function scheme() {
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
