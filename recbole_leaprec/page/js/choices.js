// The points at which the summary can show all methods: as well calibrated as each other, or at the same lambda.

import { methods, NAMES, reference } from "./data.js";
import { atLambda, fixed, known, plain } from "./format.js";
import { referencePoint } from "./points.js";

/** Groups of choices, `{label, choices: [{key, text, said, pick}]}`; `pick` finds the point among those of a method. */
export function choices() {
  const point = referencePoint();
  const every = methods.flatMap((method) => method.points ?? []);
  const levels = every.map((entry) => entry.skl).filter(known);
  const [least, most] = [Math.min(...levels), Math.max(...levels)];
  const bounds = [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1].filter((bound) => bound >= least && bound <= most);
  const lambdas = [...new Set(every.map((entry) => entry.lambda).filter(known))].sort((a, b) => a - b);
  return [
    {
      label: "As well calibrated",
      choices: [
        ...(known(point?.skl) ? [asCalibrated(point.skl, `${reference.name} at ${atLambda(point)}`)] : []),
        ...bounds.map((bound) => asCalibrated(bound)),
      ],
    },
    { label: "The same lambda", choices: lambdas.map(sameLambda) },
  ].filter((group) => group.choices.length);
}

/** S_KL up to a bound: a round one, or that of `whose` lists. */
function asCalibrated(bound, whose) {
  const figure = whose ? fixed(bound) : plain(bound);
  return {
    key: `skl:${bound}`,
    text: `with ${NAMES.skl} at most ${figure}${whose ? `, as ${whose}` : ""}`,
    said: `Each method at its smallest lambda whose lists have ${NAMES.skl} of at most ` +
      `${figure}${whose ? `, that of ${whose}` : ""}.`,
    pick: (points) => points
      .filter((entry) => known(entry.skl) && entry.skl <= bound + 1e-9)
      .sort((a, b) => a.lambda - b.lambda)[0],
  };
}

/** One lambda; a method that has none is shown at its only point. */
function sameLambda(lambda) {
  const alone = (points) => (points.length === 1 && !known(points[0].lambda) ? points[0] : undefined);
  return {
    key: `lambda:${lambda}`,
    text: `at lambda ${plain(lambda)}`,
    said: `Each method at lambda ${plain(lambda)}. Methods use lambda differently: compare them at the same S_KL.`,
    pick: (points) => points.find((entry) => entry.lambda === lambda) ?? alone(points),
  };
}
