/** Line charts as SVG, each with its table behind it. A gap in the data is a gap in the line. */

import { h, svg } from "./dom.js";
import { moment, number, t } from "./words.js";

const WIDTH = 600, HEIGHT = 120;
const ROWS = 12;

/**
 * Returns a figure: chart({title, times: [ms, …], step: ms, series: [{name, values: [number or null, …], kind}], show}).
 * A series of the kind "bad" is red. `show` writes a value; `whole`: how the table makes one number of several, their "mean" or the "most".
 */
export function chart({ title, times, step, series, show = number, whole = "mean" }) {
  const most = Math.max(...series.flatMap((one) => one.values.filter((value) => value !== null)), 0);
  const from = times[0], span = Math.max(times.at(-1) - from, step);
  const x = (at) => ((at - from) / span) * WIDTH, y = (value) => HEIGHT - (most ? value / most : 0) * (HEIGHT - 4) - 2;
  return h("figure", { class: "chart", key: title },
    h("figcaption", {}, h("strong", {}, title), series.map((one, n) => h("span", { class: `key key-${n} ${one.kind || ""}` }, t("chart.now", { name: one.name, value: show(lastOf(one.values)) })))),
    h("div", { class: "plot" },
      h("span", { class: "most" }, show(most)),
      svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": t("chart.label", { title, most: show(most) }) },
        series.map((one, n) => svg("path", { class: `line-${n} ${one.kind || ""}`, d: line(times, one.values, step, x, y) })))),
    h("div", { class: "times" }, h("span", {}, moment(from)), h("span", {}, moment(times.at(-1)))),
    behind({ times, series, show, whole }));
}

const lastOf = (values) => values.findLast((value) => value !== null) ?? 0;

function line(times, values, step, x, y) {
  let path = "";
  values.forEach((value, n) => {
    if (value === null) return;
    const goesOn = n > 0 && values[n - 1] !== null && times[n] - times[n - 1] <= 2.5 * step;
    path += `${goesOn ? "L" : "M"}${x(times[n]).toFixed(1)} ${y(value).toFixed(1)}`;
    if (!goesOn && (n + 1 === values.length || values[n + 1] === null)) path += "h2"; // a point between two gaps
  });
  return path;
}

/** The same numbers as a table of at most twelve rows. */
function behind({ times, series, show, whole }) {
  const size = Math.ceil(times.length / ROWS);
  const starts = Array.from({ length: Math.ceil(times.length / size) }, (_, n) => n * size);
  const one = (values) => {
    const known = values.filter((value) => value !== null);
    if (!known.length) return "–";
    return show(whole === "mean" ? known.reduce((sum, value) => sum + value, 0) / known.length : Math.max(...known));
  };
  return h("details", {}, h("summary", {}, t("chart.table")),
    h("div", { class: "wide-table", tabindex: 0 }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("chart.from")), series.map(({ name }) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, starts.map((start) => h("tr", {}, h("th", { scope: "row" }, moment(times[start])),
        series.map(({ values }) => h("td", {}, one(values.slice(start, start + size))))))))));
}
