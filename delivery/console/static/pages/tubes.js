/** The tubes: how many tasks each has in each state, how fast it goes, how long they wait, who paused it. A number leads to its tasks. */

import { field, h, paint } from "../lib/dom.js";
import { ago, duration, number, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { may, notice, tag, toast, toastError } from "../lib/page.js";
import { ask, open } from "../lib/dialog.js";
import { follow } from "../lib/live.js";
import { table } from "../lib/table.js";

const STATES = ["waiting", "ready", "locked", "taken", "buried"];
// Workers take due tasks within three seconds.
const OVERDUE_MS = 5000;
const NUMBER = "minmax(4.75rem, 1fr)", WIDER = "minmax(5.5rem, 1fr)";
// Milliseconds between two readings while tasks move: each costs the server some reads, in each open console.
const READ_PAUSE = 2000;
const ROUNDED = { maximumFractionDigits: 1 };

export default {
  title: "page.tubes",
  right: "inspect",
  render(root, parameters, context) {
    const mayChange = may(context.me, "operate");
    const warning = h("div"), now = h("div"), place = h("div"), idle = h("div"), shares = h("div");
    paint(root, h("h1", {}, t("page.tubes")), warning, now, place, idle, shares);
    let showsIdle = false;
    const toggle = () => { showsIdle = !showsIdle; list.reload(); };
    const load = async ({ signal }) => {
      const { tubes, weights, overdue_ms } = await api.get("/v1/queue/tubes", {}, { signal });
      paint(warning, tubes.filter((tube) => tube.paused).map(({ name, paused: { by, reason, at } }) => notice("warn", t("tubes.paused_by", { tube: name, by, reason, when: ago(at) }))), overdue_ms > OVERDUE_MS && notice("warn", t("tubes.overdue", { time: duration(overdue_ms / 1000) })));
      paint(shares, weightList(weights, mayChange, () => list.reload()));
      paint(now, h("p", {}, sums(tubes)));
      const busy = tubes.filter(hasWork), rest = tubes.filter((tube) => !hasWork(tube));
      paint(idle, rest.length > 0 && h("div", { class: "actions" }, h("button", { "aria-expanded": String(showsIdle), onclick: toggle }, t(showsIdle ? "tubes.hide_idle" : "tubes.show_idle", { count: rest.length }))));
      return { rows: showsIdle ? [...busy, ...rest] : busy, next: null };
    };
    const list = table(place, {
      label: t("page.tubes"), context, load, id: (tube) => tube.name, columns: columns(mayChange, () => list.reload()),
      whenEmpty: { title: t("tubes.none_busy") },
    });
    follow(["queue"], () => list.update(), context.signal, READ_PAUSE);
  },
};

const work = ({ stats }) => STATES.reduce((sum, state) => sum + (stats?.states[state] || 0), 0);
const hasWork = (tube) => work(tube) > 0 || Boolean(tube.paused) || Boolean(tube.rate);

/** What runs now and what is tried later, over all tubes; each leads to its tasks. */
function sums(tubes) {
  const link = (state, key) => {
    const count = tubes.reduce((sum, { stats }) => sum + (stats?.states[state] || 0), 0);
    return h("a", { href: `#/tasks?state=${state}` }, t(key, { count }));
  };
  return [link("taken", "tubes.runs_now"), " · ", link("waiting", "tubes.later"), " · ", link("buried", "tubes.buried")];
}

/** The last hour of one tube. */
async function curve({ name }) {
  const [{ chart }, { step, points }] = await Promise.all([import("./overview.js"), api.get("/v1/figures", { tube: name, step: 30 })]);
  const times = points.map((one) => one.at);
  const flow = (key) => points.map((one, n) => (one.flow ? (one.flow[key] * 60000) / (times[n] - times[n - 1]) : null));
  const draw = (title, series) => chart({ title: t(`overview.${title}`), times, step: step * 1000, series: series.map(([key, values]) => ({ name: t(`overview.${key}`), values })) });
  await open(t("tubes.curve_title", { tube: name }), (close) => [
    points.length < 2 ? h("p", {}, t("overview.no_figures")) : h("div", { class: "charts" },
      draw("tasks", [["done", flow("done")], ["put", flow("put")]]),
      draw("depth", [["ready", points.map((one) => one.ready + one.locked)], ["taken", points.map((one) => one.taken)]])),
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => close(), autofocus: true }, t("dialog.done"))),
  ]);
}

function columns(mayChange, again) {
  return [
    { title: t("tubes.name"), width: "minmax(8rem, 3fr)", cell: nameOf },
    ...STATES.map((state) => ({ title: word("task_state", state), width: WIDER, class: "number", cell: (tube) => count(tube, state) })),
    { title: t("tubes.oldest"), width: NUMBER, class: "number", cell: ({ stats }) => (stats?.oldest_ms ? duration(stats.oldest_ms / 1000) : "–") },
    { title: t("tubes.rate"), width: NUMBER, class: "number", cell: rate },
    { title: t("tubes.pace"), width: NUMBER, class: "number", cell: (tube) => pace(tube, mayChange, again) },
    ...(mayChange ? [{ title: t("tubes.action"), width: "10rem", cell: (tube) => change(tube, again) }] : []),
  ];
}

const nameOf = ({ name, paused }) => [name.split(/(?<=[.-])/).flatMap((part) => [part, h("wbr")]), " ", paused && tag("warn", t("tubes.paused"))];

/** The number leads to its list; the bar behind it is the share of this state. */
function count({ name, stats }, state) {
  const states = stats?.states || {}, n = states[state] || 0;
  if (!n) return "–";
  const share = n / STATES.reduce((sum, one) => sum + (states[one] || 0), 0);
  return h("a", { class: `bar-link ${state}`, style: { "--share": share }, href: `#/tasks?${new URLSearchParams({ tube: name, state })}` }, number(n));
}

/** How many tasks of a tube are done in a second; the number opens its last hour. */
function rate(tube) {
  const shown = number(tube.rate || 0, ROUNDED);
  return h("span", {}, h("button", { class: "plain", "aria-label": t("tubes.curve_of", { tube: tube.name, rate: t("tubes.per_second", { n: shown }) }), onclick: () => curve(tube) }, shown));
}

/** How fast a tube may go: with the right to change it, a button. */
function pace(tube, mayChange, again) {
  const shown = tube.pace ? number(tube.pace) : "∞";
  const text = tube.pace ? t("tubes.per_second", { n: number(tube.pace) }) : t("tubes.unlimited");
  return mayChange ? h("span", {}, h("button", { class: "plain", "aria-label": t("tubes.pace_of", { tube: tube.name, pace: text }), onclick: () => setPace(tube, again) }, shown)) : shown;
}

async function setPace({ name, pace: now }, again) {
  const input = h("input", { name: "pace", type: "number", min: 0.01, max: 1000000, step: "any", value: now ?? "", autocomplete: "off" });
  const done = await ask({
    title: t("tubes.pace_title", { tube: name }), text: t("tubes.pace_text"), action: t("tubes.pace_save"),
    fields: [field({ label: t("tubes.pace_field"), hint: t("tubes.pace_hint") }, input)],
    submit: (given) => api.patch(`/v1/queue/tubes/${encodeURIComponent(name)}`, { pace: given.pace === "" ? null : Number(given.pace) }),
  });
  if (done) again();
}

/** Tenants take turns; those that get more than one turn are listed. Who may change them can give any tenant a weight. */
function weightList(weights, mayChange, again) {
  const rows = Object.entries(weights);
  const one = (tenant, count) => (mayChange
    ? h("button", { class: "chip", onclick: () => setWeight(tenant, count, again) }, t("tubes.weight", { tenant, count })) : tag("", t("tubes.weight", { tenant, count })));
  return (rows.length > 0 || mayChange) && [h("h2", {}, t("tubes.weights")), h("p", { class: "quiet" }, t("tubes.weights_text")),
    rows.length > 0 && h("ul", { class: "chips" }, rows.map(([tenant, count]) => h("li", { key: tenant }, one(tenant, count)))),
    mayChange && h("div", { class: "actions" }, h("button", { onclick: () => setWeight("", 2, again) }, t("tubes.weight_set")))];
}

async function setWeight(tenant, weight, again) {
  const done = await ask({
    title: t("tubes.weight_set"), text: t("tubes.weights_text"), action: t("tubes.weight_set"),
    fields: [
      field({ label: t("task.tenant") }, h("input", { name: "tenant", value: tenant, required: true, maxlength: 64, autocomplete: "off" })),
      field({ label: t("tubes.weight_field"), hint: t("tubes.weight_hint") }, h("input", { name: "weight", type: "number", min: 1, max: 100, value: weight, required: true })),
    ],
    submit: (given) => api.put(`/v1/queue/weights/${encodeURIComponent(given.tenant)}`, { weight: Number(given.weight) }),
  });
  if (done) again();
}

const change = ({ name, paused }, again) => (paused
  ? h("button", { key: "resume", class: "primary", onclick: () => resume(name, again) }, t("tubes.resume"))
  : h("button", { key: "pause", onclick: () => pause(name, again) }, t("tubes.pause")));

async function pause(name, again) {
  const done = await ask({
    title: t("tubes.pause_title", { tube: name }), text: t("tubes.pause_text"), action: t("tubes.pause"),
    fields: [field({ label: t("tubes.reason"), hint: t("tubes.reason_hint") }, h("input", { name: "reason", required: true, maxlength: 300, autocomplete: "off" }))],
    submit: ({ reason }) => api.post(`/v1/queue/tubes/${encodeURIComponent(name)}:pause`, { reason }),
  });
  if (done) again();
}

async function resume(name, again) {
  try {
    await api.post(`/v1/queue/tubes/${encodeURIComponent(name)}:resume`);
    toast(t("tubes.resumed", { tube: name }));
    again();
  } catch (error) {
    toastError(error);
  }
}
