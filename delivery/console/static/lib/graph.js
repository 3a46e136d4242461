/** A graph as SVG: boxes that can be chosen, and lines. The API has computed where each stands; a table says the same. */

import { h, svg } from "./dom.js";
import { t, word } from "./words.js";

const WIDTH = 180, HEIGHT = 52;
const LETTERS = 24;
const KINDS = { completed: "good", failed: "bad", unknown: "warn", pending: "info", drop: "dropped", hold: "held" };

/**
 * Returns the drawing of {nodes, edges, width, height}. `states`: id of a node → state of its action, which shows the way
 * that a run has gone; `chosen`: an id; `choose(id)` is called by a click, Enter or Space.
 */
export function graph({ nodes, edges, width, height }, { label, states = null, chosen, choose }) {
  const places = new Map(nodes.map((node) => [node.id, node]));
  const drawn = h("div", { class: "graph", key: "graph", role: "group", tabindex: 0, "aria-label": label },
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` },
      edges.map((edge) => line(edge, places, states && isTaken(edge, states))),
      nodes.map((node) => box(node, states, chosen === node.id, choose))));
  // On a phone the first box would be out of sight.
  requestAnimationFrame(() => { drawn.scrollLeft = nodes[0]?.x - drawn.clientWidth / 2; });
  return drawn;
}

/** Returns the states of the actions of a run, or of a dry run, by node. */
export const statesOf = (actions) => Object.fromEntries(actions.map((one) => [one.node, one.state || one.outcome]));

const SPLICES = "splices in";
const NOT_RUN = new Set(["drop", "hold", undefined]);

/** `failed` names what is unknown, too. */
function isTaken({ source, target, label }, states) {
  if (NOT_RUN.has(states[target]) || !states[source]) return false;
  const outcome = states[source] === "unknown" ? "failed" : states[source];
  return label === "any" || label === SPLICES || label.split(", ").includes(outcome);
}

function box({ id, n, type, title, x, y }, states, isChosen, choose) {
  const state = states?.[id];
  const use = (event) => { if (event.type === "click" || event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(id); } };
  return svg("g", { key: id, class: `box ${n ? "" : "dropped"} ${states ? KINDS[state] || "untouched" : ""}`, transform: `translate(${x - WIDTH / 2} ${y - HEIGHT / 2})`,
    role: "button", tabindex: 0, "aria-pressed": String(isChosen), onclick: use, onkeydown: use,
    "aria-description": state && word("step_state", state) },
  svg("rect", { width: WIDTH, height: HEIGHT, rx: 8 }),
  svg("text", { x: 12, y: title ? 22 : 31, class: "box-type" }, n ? t("runs.step", { n, type: cut(type) }) : t("scenarios.by_button")),
  title && svg("text", { x: 12, y: 40, class: "box-title" }, cut(title)));
}

const cut = (text) => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);

function line({ source, target, label, points }, places, isGone) {
  const from = places.get(source), to = places.get(target);
  const way = points.length ? down(points) : back(from, to);
  return svg("g", { class: isGone ? "edge taken" : "edge" },
    svg("path", { d: way.line }), svg("path", { class: "tip", d: way.tip }),
    svg("text", { x: way.label[0], y: way.label[1] }, label === SPLICES ? t("scenarios.splices") : label));
}

/** Through the points, from the lower side of a box to the upper side of another. */
function down(points) {
  const way = points.map(([x, y], n) => [x, y + (n === 0 ? HEIGHT / 2 : n === points.length - 1 ? -HEIGHT / 2 : 0)]);
  const [[x, y], ...rest] = way, [endX, endY] = way.at(-1);
  let line = `M${x} ${y}`, last = [x, y];
  for (const [nextX, nextY] of rest) {
    const middle = (last[1] + nextY) / 2;
    line += `C${last[0]} ${middle} ${nextX} ${middle} ${nextX} ${nextY}`;
    last = [nextX, nextY];
  }
  return { line, tip: `M${endX - 5} ${endY - 8}h10l-5 8z`, label: [(x + rest[0][0]) / 2 + 6, (y + rest[0][1]) / 2 + 4] };
}

/** Round the right side, for an edge that closes a loop. */
function back(from, to) {
  const [x, y] = [from.x + WIDTH / 2, from.y], [endX, endY] = [to.x + WIDTH / 2, to.y];
  const out = Math.max(x, endX) + 40;
  return { line: `M${x} ${y}C${out} ${y} ${out} ${endY} ${endX} ${endY}`, tip: `M${endX + 8} ${endY - 5}v10l-8 -5z`, label: [x + 6, y - 6] };
}
