/** The home of operators: is all well, what needs attention first, and what happened in the last hour or week. */

import { h, paint, svg } from "../lib/dom.js";
import { ago, duration, fullMoment, has, moment, number, said, t, word } from "../lib/words.js";
import { api, isAway, watchConnection } from "../lib/api.js";
import { countMatters, notice, tag, withStates } from "../lib/page.js";
import { follow } from "../lib/live.js";

const COLOURS = { good: "good", attention: "warn", bad: "bad" };
const URGENT = ["overdue", "data_lost", "halted", "not_running", "unserved", "unanswered", "server_setting", "not_polling"];
/** Where a matter is looked after. */
const PAGES = {
  overdue: "processes", office: "groups", halted: "accounts", not_polling: "processes", unclear: "messages", jobs_failed: "jobs", not_running: "processes", unserved: "processes", unanswered: "processes", failures: "messages", webhook: "webhooks", sync: "sync", dead_letters: "dead_letters", paused: "tubes",
};
const NOT_REACHED = ["failed", "unknown", "expired"];
// Milliseconds between two readings while tasks move: each costs the server some reads, in each open console.
const HEALTH_PAUSE = 5000;
const FIGURES_PAUSE = 10000;
const MINUTE = 60000;
// Of the drawing of a chart, in its own units; rows of its table.
const WIDTH = 600, HEIGHT = 120, ROWS = 12;

export default {
  title: "page.overview",
  right: "inspect",
  render(root, parameters, context) {
    const { signal } = context;
    const head = h("div"), body = h("div");
    const step = () => (context.query.span === "week" ? 3600 : 30);
    paint(root, h("h1", {}, t("page.overview")), head,
      h("div", { class: "line" }, h("h2", {}, t("overview.activity")), spans(context, () => again())), body);
    let known = null;
    const state = withStates(head, async () => known = await api.get("/v1/overview", {}, { signal }), health);
    const again = withStates(body, () => api.get("/v1/figures", { step: step() }, { signal }), activity);
    follow(["queue"], state, signal, HEALTH_PAUSE);
    follow(["queue"], again, signal, FIGURES_PAUSE);
    return watchConnection((connection) => known && paint(head, isAway(connection) ? notice("warn", h("p", { class: "large" }, t("overview.away"))) : health(known)));
  },
};

const spans = (context, again) => h("label", { class: "span" }, h("span", { class: "quiet" }, t("overview.span")), " ",
  h("select", { onchange: ({ target }) => { context.setQuery({ span: target.value }); again(); } },
    ["hour", "week"].map((one) => h("option", { value: one, selected: one === (context.query.span || "hour") }, t(`overview.${one}`)))));

// health

function health({ health: state, matters }) {
  countMatters(matters);
  const open = matters.filter((one) => one.kind !== "throttled"), throttled = matters.filter((one) => one.kind === "throttled");
  return [
    notice(COLOURS[state], h("p", { class: "large" }, h("strong", {}, t(`overview.${state}`)), " ", matters.length ? sentence(matters[0]) : t("overview.good_text"))),
    open.length > 0 && [h("h2", {}, t("overview.first")), h("ul", { class: "panel matters" }, open.map(matter))],
    throttled.length > 0 && [h("h2", {}, t("overview.throttled")), h("ul", { class: "panel matters" }, throttled.map(throttle))],
  ];
}

function sentence({ kind, subject, count = 0, of = 0, reason = "", words = "", by, at }) {
  const why = reasonOf(kind, reason, subject);
  return t(`matter.${kind}`, { subject: word("channel", subject), count, of, reason: words ? `${why} (${words})` : why, by, when: at ? ago(at) : "" });
}

/** Returns a reason in the language of the reader where it is one of a few; else in the words of its source. */
function reasonOf(kind, reason, subject) {
  if (kind === "data_lost") return t(`lost.${subject}`);
  if (kind === "server_setting" && has(`setting.${subject}`)) return t(`setting.${subject}`);
  if (kind === "failures" || kind === "unclear") return reason ? word("reason", reason) : t("overview.no_reason");
  if (kind === "sync") return word("sync_fault", reason);
  return reason ? said(reason) : t("overview.no_reason");
}

const matter = (one) => h("li", { class: "line", key: `${one.kind} ${one.subject}` },
  h("span", { class: "matter" }, tag(URGENT.includes(one.kind) ? "bad" : "warn", t(`kind.${one.kind}`)), " ", sentence(one),
    one.command && [" ", h("code", {}, one.command)]),
  PAGES[one.kind] && h("a", { href: `#/${PAGES[one.kind]}` }, t("overview.look")));

const throttle = ({ subject, reason, at }) => h("li", { class: "line", key: `${subject} ${reason}` },
  h("span", {}, word("channel", subject), " · ", reason), h("span", { title: fullMoment(at) }, t("overview.until", { when: ago(at) })));

// activity

function activity({ step, points, outcomes }) {
  if (points.filter((one) => one.flow).length < 2) return h("p", { class: "state" }, t("overview.no_figures"));
  const times = points.map((one) => one.at);
  const flow = (name) => points.map((one, n) => (one.flow ? (one.flow[name] * MINUTE) / (times[n] - times[n - 1]) : null));
  const now = (read) => points.map(read);
  const figure = (title, series, more) => chart({ title: t(`overview.${title}`), times, step: step * 1000,
    series: series.map(([name, values, kind]) => ({ name: t(`overview.${name}`), values, kind })), ...more });
  return [
    h("div", { class: "charts" },
      figure("messages", [["sent", flow("sent")], ["not_reached", flow("not_reached"), "bad"]], { show: rounded }),
      figure("tasks", [["done", flow("done")], ["put", flow("put")]], { show: rounded }),
      figure("depth", [["ready", now((one) => one.ready + one.locked)], ["taken", now((one) => one.taken)]], { whole: "most" }),
      figure("delay", [["oldest", now((one) => one.oldest_ms / 1000)], ["lag", now((one) => (one.flow?.lag_ms ?? null) === null ? null : one.flow.lag_ms / 1000)]], { show: (seconds) => duration(seconds), whole: "most" })),
    h("h2", {}, t("overview.failures")),
    failures(outcomes.filter((one) => NOT_REACHED.includes(one.status)), outcomes),
    h("p", { class: "quiet small" }, t("overview.since", { when: moment(points[0].at) })),
  ];
}

const rounded = (value) => number(value, { maximumFractionDigits: value < 10 ? 1 : 0 });

function failures(failed, outcomes) {
  if (!failed.length) return h("p", { class: "quiet" }, t("overview.no_failures"));
  const sent = (channel) => outcomes.filter((one) => one.channel === channel && (one.status === "sent" || NOT_REACHED.includes(one.status))).reduce((sum, one) => sum + one.count, 0);
  const titles = ["channel", "count", "share", "status", "reason"];
  return h("div", { class: "wide-table", tabindex: 0 }, h("table", {},
    h("thead", {}, h("tr", {}, titles.map((one) => h("th", { scope: "col", class: one === "count" && "number" }, t(`overview.${one}`))))),
    h("tbody", {}, failed.slice(0, 30).map((one) => h("tr", {},
      h("th", { scope: "row" }, word("channel", one.channel)), h("td", { class: "number" }, number(one.count)),
      h("td", {}, h("span", { class: "share", style: { "--share": one.count / sent(one.channel) } }), " ",
        number(one.count / sent(one.channel), { style: "percent", maximumFractionDigits: 1 })),
      h("td", {}, word("status", one.status)), h("td", {}, one.reason ? word("reason", one.reason) : "–"))))));
}

// charts: lines as SVG, each with its table behind it; a gap in the data is a gap in the line

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
