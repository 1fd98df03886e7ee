// Draws the page.

import { ablation } from "./ablation.js";
import { comparison } from "./comparison.js";
import { data } from "./data.js";
import { density } from "./density.js";
import { byId } from "./dom.js";
import { headline } from "./headline.js";
import { menu } from "./menu.js";
import { scheme } from "./scheme.js";
import { shift } from "./shift.js";
import { summary } from "./summary.js";
import { times } from "./times.js";
import { tradeoff } from "./tradeoff.js";
import { users } from "./users.js";

function footer() {
  const versions = Object.entries(data.versions ?? {}).map(([name, version]) => `${name} ${version}`);
  byId("footer").textContent = [data.made && `Made ${data.made}`, ...versions].filter(Boolean).join(" · ");
}

headline();
const sections = { summary, tradeoff, ablation, comparison, times, density, shift, users };
scheme()(); // the colours first, so that plots are drawn once
for (const [id, draw] of Object.entries(sections)) if (!draw()) byId(id).remove();
menu();
footer();
