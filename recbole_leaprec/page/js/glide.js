// Rows that move when their list changes.

/** New rows for a list; those that stay glide from their old place to the new one, unless less motion is wanted. */
export function glide(holder, fresh) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const before = new Map([...holder.children].map((row) => [row.dataset.item, row.getBoundingClientRect().top]));
  const top = holder.getBoundingClientRect().top;
  holder.replaceChildren(...fresh);
  if (still || !before.size) return;
  const shifted = holder.getBoundingClientRect().top - top;
  for (const row of fresh) {
    const old = before.get(row.dataset.item);
    if (old === undefined) row.animate([{ opacity: 0.2 }, { opacity: 1 }], { duration: 300, easing: "ease-out" });
    else {
      const by = old + shifted - row.getBoundingClientRect().top;
      const moves = [{ transform: `translateY(${by}px)` }, { transform: "none" }];
      if (Math.abs(by) > 1) row.animate(moves, { duration: 250, easing: "ease-out" });
    }
  }
}
