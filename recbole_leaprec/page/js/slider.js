// The slider of lambda, and where it starts.

import { reference } from "./data.js";
import { plain } from "./format.js";
import { nearest, referencePoint } from "./points.js";

/** A range input over the lambdas of whichever method is chosen; keeps near its lambda when the method changes. */
export function lambdaSlider(input, output, onchange) {
  let lambdas = [0];
  const say = () => {
    const text = `lambda ${plain(lambdas[input.valueAsNumber])}`;
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  input.addEventListener("input", () => {
    say();
    onchange();
  });
  return {
    over(newLambdas, wanted = lambdas[input.valueAsNumber]) {
      lambdas = newLambdas;
      input.max = lambdas.length - 1;
      input.value = nearest(lambdas, wanted ?? 0);
      input.disabled = lambdas.length < 2;
      say();
    },
    get index() { return input.valueAsNumber; },
    get lambda() { return lambdas[input.valueAsNumber]; },
  };
}

export const startLambda = () => referencePoint()?.lambda ?? 0.3;
export const startMethod = (list) => (list.find((method) => method.name === reference?.name) ?? list[0]).name;
