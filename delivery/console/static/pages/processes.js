/** The processes: what runs, since when, why it halted, throttles with a countdown; the tubes that wait for a process, and the parts of `./ada up` that do not run. */

import { h, paint } from "../lib/dom.js";
import { ago, duration, fullMoment, has, number, rich, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { notice, quoted, tag, toast, toastError } from "../lib/page.js";
import { confirm } from "../lib/dialog.js";
import { follow } from "../lib/live.js";
import { table } from "../lib/table.js";

const KINDS = { running: "good", starting: "info", silent: "warn" };
const SECOND = 1000;
/** What needs attention stands first. */
const rank = ({ state }) => ["halted", "failed", "silent"].indexOf(state) >>> 0;

const hasEnded = ({ state }) => state === "halted" || state === "failed";

export default {
  title: "page.processes",
  right: "inspect",
  render(root, parameters, context) {
    const warnings = h("div"), place = h("div");
    let ahead = 0; // of the server's clock
    paint(root, h("h1", {}, t("page.processes")), warnings, place);
    const load = async ({ signal }) => {
      const { processes, unserved, unanswered, faulty, now } = await api.get("/v1/processes", {}, { signal });
      const ended = processes.filter(hasEnded).map(({ kind, name }) => (kind === "courier" ? name : `${kind} ${name}`));
      ahead = new Date(now) - Date.now();
      paint(warnings, faulty.filter((one) => !ended.includes(one.name)).map((one) => notice("bad",
        h("p", {}, t("processes.faulty", { part: word("channel", one.name), host: one.host, when: ago(one.since), count: one.ends })), one.reason && h("p", {}, quoted(one.reason)))), unanswered.length > 0 && notice("bad",
        h("p", {}, t("matter.unanswered", { subject: unanswered.map((one) => word("channel", one)).join(", ") })), h("p", {}, h("code", {}, "./ada scenarios"))), unserved.filter((one) => !ended.includes(one.tube)).map((one) => notice("warn",
        h("p", {}, t("processes.unserved", { tube: word("channel", one.tube), count: one.ready })), h("p", {}, h("code", {}, one.command)))));
      return { rows: processes.sort((one, other) => rank(one) - rank(other)), next: null };
    };
    const left = (until) => Math.max(0, Math.ceil((new Date(until) - Date.now() - ahead) / SECOND));
    const list = table(place, { label: t("page.processes"), context, load, id: (one) => one.id, columns: columns(left, context.me.scopes.includes("operator")), whenEmpty: { title: t("processes.none") } });
    const ticking = setInterval(() => {
      for (const one of place.querySelectorAll("[data-until]")) one.textContent = duration(left(one.dataset.until));
    }, SECOND);
    follow(["processes"], () => list.update(), context.signal);
    return () => clearInterval(ticking);
  },
};

const columns = (left, mayChange) => [
  { title: t("processes.name"), width: "2fr", cell: (one) => [titleOf(one), one.account && h("div", { class: "quiet small cut" }, one.account)] },
  { title: t("processes.state"), width: "8.5rem", cell: (one) => [tag(KINDS[one.state] || "bad", word("process_state", one.state)), one.is_quiet && tag("warn", t("processes.is_quiet"))] },
  { title: t("processes.started"), width: "10rem", cell: ({ started, beat }) => [time(started), h("div", { class: "quiet small" }, rich("processes.beat", { when: time(beat) }))] },
  { title: t("processes.where"), width: "2fr", cell: ({ host, pid, version }) => [t("processes.host", { host, pid: String(pid) }), h("div", { class: "quiet small cut" }, version)] },
  { title: t("processes.notes"), width: "2fr", cell: (one) => notes(one, left) },
  ...(mayChange ? [{ title: t("processes.change"), width: "13rem", cell: actions }] : []),
];

const actions = (one) => h("div", { class: "row-actions" },
  hasEnded(one) && h("button", { onclick: () => act("/v1/processes:start", { kind: one.kind, name: one.name }, "processes.starting") }, t("processes.start")),
  one.state === "running" && one.tubes.length > 0 && h("button", { onclick: () => request(one, one.is_quiet ? "resume" : "quiet") }, t(one.is_quiet ? "processes.resume" : "processes.quiet")),
  one.state === "running" && h("button", { class: "danger", onclick: () => stop(one) }, t("processes.stop")));

const request = ({ id }, name) => act(`/v1/processes/${id}/requests`, { request: name }, "processes.asked");

async function stop(one) {
  if (await confirm({ title: t("processes.stop_title", { process: titleOf(one) }), text: t("processes.stop_text"), action: t("processes.stop"), danger: true })) await request(one, "stop");
}

async function act(path, body, said) {
  try {
    await api.post(path, body);
    toast(t(said));
  } catch (error) {
    toastError(error);
  }
}

const titleOf = ({ kind, name }) => (has(`process.${kind}`) ? t(`process.${kind}`, { name: name && word("channel", name) }) : `${kind} ${name}`);
const time = (value) => h("time", { datetime: value, title: fullMoment(value) }, ago(value));

function notes({ state, reason, fault, throttles, rate, balance, low_balance, command }, left) {
  const isLow = balance !== null && balance < (low_balance || 0);
  return [
    reason && h("div", {}, quoted(reason)),
    fault && h("div", {}, tag("bad", t("processes.fault")), " ", quoted(fault)),
    state === "halted" && h("div", { class: "quiet small" }, rich("processes.repair", { command: h("code", {}, command) })),
    throttles.map(({ scope, until }) => h("div", {}, t("processes.throttled", { scope: word("throttle", scope) }), " ", h("span", { dataset: { until } }, duration(left(until))))),
    rate !== null && h("div", {}, t("processes.rate", { rate: number(rate) })),
    balance !== null && h("div", {}, isLow ? tag("bad", t("processes.low_balance", { balance: number(balance) })) : t("processes.balance", { balance: number(balance) })),
  ];
}
