/** One job: its state and why, what it waits for, its parameters, steps, effects, children and log; what can be done with it. */

import { h, paint } from "../lib/dom.js";
import { ago, fullMoment, moment, number, said, t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { fact, notice, withStates } from "../lib/page.js";
import { VERBS, actorOf, change, mayManage, stateTag, why } from "./jobs.js";
import { query, sendSignal, shownJson, signalsOf, stored, waiting } from "./job_stored.js";

const TIMES = ["created_at", "changed_at", "last_run", "next_run", "resumes_at"];
const TEXTS = ["kind", "user", "iterations", "timezone"];
const KEPT_LINES = 1000;
const PAINT_PAUSE = 250;
const REREAD_PAUSE = 500;
const RECONNECT_PAUSE = 3000;
const AGAIN_MS = 5000;
const NEAR_THE_END = 40;

export default {
  title: "page.job",
  right: "inspect",
  render(root, [id], context) {
    const { me, signal, title } = context;
    title(id);
    const path = `/v1/jobs/${encodeURIComponent(id)}`, head = h("div"), lists = h("div"), log = h("div");
    paint(root, head, lists, log);
    let isFollowed = false;
    const reread = stored(lists, path, context, mayManage(me) && actorOf(me), () => again());
    const again = withStates(head, () => api.get(path, {}, { signal }), (job) => {
      if (!isFollowed) followLog(log, path, later(again, signal), signal);
      else reread();
      isFollowed = true;
      return record(job, path, me, again);
    });
    // A job that begins to wait writes no line.
    const timer = setInterval(() => document.visibilityState === "visible" && again(), AGAIN_MS);
    return () => clearInterval(timer);
  },
};

/** Returns a function that calls `work` once, soon, however often it is called until then. */
function later(work, signal) {
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  return () => { timer ||= setTimeout(() => { timer = 0; work(); }, REREAD_PAUSE); };
}

const named = (key, value) => [h("h2", {}, t(key)), h("pre", { tabindex: 0, "aria-label": t(key) }, shownJson(value))];

const linkOf = (id) => h("a", { href: `#/job/${encodeURIComponent(id)}` }, id);

function record(job, path, me, again) {
  const reason = why(job), by = actorOf(me);
  return [
    h("h1", {}, job.id, " ", stateTag(job.state)),
    reason && notice(job.state === "failed" ? "bad" : ["stopped", "finished"].includes(job.state) ? "info" : "warn", reason),
    job.waits_for && notice("info", waiting(job)),
    h("div", { class: "actions" },
      mayManage(me) && ["running", "paused"].includes(job.state) && (signalsOf(job).length ? signalsOf(job) : [""]).map((name) => h("button", {
        key: `signal ${name}`, class: name ? "primary" : "", onclick: async () => { if (await sendSignal(path, name, by)) again(); },
      }, name ? t("job.signal_named", { name }) : t("job.signal"))),
      mayManage(me) && VERBS[job.state].map((verb) => h("button", {
        key: verb, class: verb === "stop" ? "danger" : verb === "pause" ? "" : "primary",
        onclick: async () => { if (await change(verb, [job.id], me)) again(); },
      }, t(`jobs.${verb}`))),
      h("button", { key: "query", onclick: () => query(path) }, t("job.query"))),
    h("h2", {}, t("job.record")),
    h("dl", { class: "facts" },
      TEXTS.map((name) => fact(`job.${name}`, typeof job[name] === "number" ? number(job[name]) : job[name])),
      job.parent && fact("job.parent", linkOf(job.parent)),
      job.children?.length > 0 && fact("job.children", job.children.map((one) => [linkOf(one), " "])),
      TIMES.filter((name) => job[name]).map((name) => fact(`job.${name}`, h("span", { title: fullMoment(job[name]) }, moment(job[name]), " (", ago(job[name]), ")")))),
    Object.keys(job.parameters).length > 0 && named("job.parameters", job.parameters),
    "own_state" in job && named("job.own_state", job.own_state),
    "result" in job && named("job.result", job.result),
  ];
}

/**
 * Shows the log in `root` as it is written and calls `changed` after new lines. While the tab is hidden nothing is read; then it
 * goes on after the last line that was seen.
 */
function followLog(root, path, changed, signal) {
  const away = h("p", { class: "quiet", hidden: true, role: "status" }, t("job.log_away"));
  const nothing = h("p", { class: "quiet" }, t("job.log_empty"));
  const lines = h("div", { class: "log panel", role: "log", tabindex: 0, "aria-label": t("job.log") }, nothing);
  paint(root, h("h2", {}, t("job.log")), away, lines);
  let stream = null, seen = 0, timer = 0, paintTimer = 0, pending = [];

  function receive({ data, lastEventId }) {
    const id = Number(lastEventId);
    // A smaller number: the log was begun anew.
    if (seen === 0 || id <= seen) { pending = []; lines.replaceChildren(); }
    seen = id;
    pending.push(JSON.parse(data));
    paintTimer ||= setTimeout(show, PAINT_PAUSE);
  }

  function show() {
    const isAtEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < NEAR_THE_END;
    lines.append(...pending.map(({ at, text }) => h("p", {}, h("time", { datetime: at, title: fullMoment(at), class: "quiet" }, moment(at)), " ", said(text))));
    while (lines.childElementCount > KEPT_LINES) lines.firstElementChild.remove();
    if (isAtEnd) lines.scrollTop = lines.scrollHeight;
    paintTimer = 0;
    pending = [];
    changed();
  }

  function open() {
    clearTimeout(timer);
    stream = new EventSource(`${path}/log?after=${seen}`);
    stream.addEventListener("line", receive);
    stream.onopen = () => { away.hidden = true; };
    stream.onerror = () => {
      away.hidden = false;
      if (stream.readyState === EventSource.CLOSED) timer = setTimeout(follow, RECONNECT_PAUSE);
    };
  }

  function close() {
    clearTimeout(timer);
    stream?.close();
    stream = null;
  }

  function follow() {
    close();
    if (document.visibilityState === "visible") open();
  }

  follow();
  document.addEventListener("visibilitychange", follow, { signal });
  signal.addEventListener("abort", () => { close(); clearTimeout(paintTimer); }, { once: true });
}
