/**
 * Tasks of the queue by state, tube, person, kind, lane and tag, from the indexes; kick, bury and cancel what is selected, or
 * everything that the filters find, up to the moment at which it was counted.
 */

import { h, paint } from "../lib/dom.js";
import { ago, fullMoment, moment, number, rich, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { may, quoted, tag, toast, toastError, empty, fact, notice, withStates } from "../lib/page.js";
import { table } from "../lib/table.js";
import { bulk, eachOf, confirm } from "../lib/dialog.js";
import { laneAddress } from "./lanes.js";

const STATES = ["waiting", "ready", "locked", "taken", "buried", "done", "failed", "cancelled", "expired"];
const KINDS = { ready: "info", taken: "info", buried: "bad", failed: "bad", done: "good" };

export const stateTag = (state) => tag(KINDS[state] || "", word("task_state", state));

export default {
  title: "page.tasks",
  right: "inspect",
  render(root, parameters, context) {
    const place = h("div"), everything = h("div", { class: "actions" });
    const mayChange = may(context.me, "operate");
    paint(root, h("h1", {}, t("page.tasks")), everything, place);
    const search = (name) => ({ name, label: t(`tasks.${name}`), type: "search" });
    const list = table(place, {
      label: t("page.tasks"), context, id: (row) => row.id, href: (row) => `#/task/${encodeURIComponent(row.id)}`,
      filters: [
        { name: "state", label: t("tasks.state"), options: [["", t("tasks.any")], ...STATES.map((state) => [state, word("task_state", state)])] },
        search("tube"), search("user"), search("kind_prefix"), search("lane"), search("tag"),
      ],
      columns: [
        { title: t("tasks.id"), width: "minmax(14.5rem, 2fr)", cell: (row) => row.id, name: (row) => row.id },
        { title: t("tasks.state"), width: "9rem", cell: (row) => stateTag(row.state) },
        { title: t("tasks.tube"), width: "1.3fr", cell: (row) => row.tube },
        { title: t("tasks.kind_prefix"), width: "1fr", cell: (row) => row.kind || "–" },
        { title: t("tasks.user"), width: "1fr", cell: (row) => row.user || "–" },
        { title: t("tasks.when"), width: "8rem", cell: when },
        { title: t("tasks.attempts"), width: "6rem", class: "number", cell: (row) => number(row.attempts || 0) },
        { title: t("tasks.error"), width: "2fr", cell: (row) => (row.error ? quoted(row.error) : "–") },
      ],
      load: async ({ cursor, signal, ...filters }) => {
        if (mayChange) paint(everything, buttons(filters, () => list.reload()));
        const page = await api.get("/v1/queue/tasks", { ...filters, cursor, limit: 50 }, { signal });
        return { rows: page.tasks, next: page.next };
      },
      actions: mayChange ? ["kick", "bury", "cancel"].map(action) : undefined,
      whenEmpty: { title: t("tasks.none"), text: t("tasks.none_text") },
    });
  },
};

/** When a waiting task is tried, since when one is worked on. */
function when({ state, due, started }) {
  const at = { waiting: due, taken: started }[state];
  if (!at) return "–";
  const shown = h("time", { datetime: new Date(at).toISOString(), title: fullMoment(at) }, ago(at));
  return state === "taken" ? rich("tasks.since", { when: shown }) : shown;
}

const dialogOf = (verb, count) => ({
  title: t(`tasks.${verb}_title`, { count }), action: t(`tasks.${verb}`), danger: verb === "cancel", count,
  changed: (n) => t("tasks.changed", { count: n }), unchanged: (n) => t("tasks.unchanged", { count: n }),
});

const action = (verb) => ({
  title: t(`tasks.${verb}`), danger: verb === "cancel",
  run: (ids) => bulk({ ...dialogOf(verb, ids.length), step: eachOf(ids, (id, options) => api.post(`/v1/queue/tasks/${encodeURIComponent(id)}:${verb}`, undefined, options)) }),
});

/** What can be done to all tasks in a state. Tasks found otherwise may be in any state: they can be cancelled. */
const VERBS = { waiting: ["bury", "cancel"], ready: ["bury", "cancel"], locked: ["bury", "cancel"], taken: ["cancel"], buried: ["kick", "cancel"], "": ["cancel"] };

function buttons(filters, again) {
  const verbs = Object.keys(filters).length ? VERBS[filters.state || ""] || [] : [];
  return verbs.map((verb) => h("button", { key: verb, class: verb === "cancel" ? "danger" : "", onclick: () => changeAll(verb, filters, again) }, t(`tasks.all_${verb}`)));
}

/** Counts first; what comes later is not touched. */
async function changeAll(verb, filters, again) {
  try {
    const { count, has_more: isMore, now: before } = await api.get("/v1/queue/tasks:count", filters);
    if (!count) return toast(t("tasks.none"));
    const covers = Object.fromEntries(Object.entries(filters).map(([name, value]) => [t(`tasks.${name}`), name === "state" ? word("task_state", value) : value]));
    await bulk({ ...dialogOf(verb, count), covers, until: moment(before), isMore, step: (expected, cursor, options) => api.post(`/v1/queue/tasks:${verb}`, { ...filters, before, expected, cursor }, options) });
  } catch (error) {
    toastError(error);
  }
  return again();
}

// one of them

const TIMES = ["put", "due", "started", "erred", "buried", "ended", "lease", "expires"];
const TEXTS = ["tube", "tenant", "kind", "user", "priority", "attempts", "owner"];

/** One task: state, place in its lane, why its last attempt failed, what happened when, what it belongs to; kick, bury, cancel. */
export const task = {
  title: "page.task",
  right: "inspect",
  render(root, [id], { me, signal }) {
    const path = `/v1/queue/tasks/${encodeURIComponent(id)}`;
    const load = () => api.get(path, {}, { signal }).catch((error) => { if (error.status !== 404) throw error; });
    const show = withStates(root, load, (task) => (task ? whole(task) : [h("h1", {}, t("page.task")), empty({ title: t("task.gone"), action: toTasks() })]));
    const whole = (task) => [
      h("h1", {}, t("page.task"), " ", stateTag(task.state)),
      h("p", { class: "quiet" }, task.id),
      task.error && notice("bad", quoted(task.error), t("task.erred_when", { when: ago(task.erred) })),
      task.waits_for && h("p", {}, t("task.ahead", { count: task.ahead || 1 }), " ", h("a", { href: `#/task/${encodeURIComponent(task.waits_for)}` }, t("task.first"))),
      linked(task),
      h("dl", { class: "facts" },
        TEXTS.filter((name) => task[name] !== undefined).map((name) => fact(`task.${name}`, typeof task[name] === "number" ? number(task[name]) : task[name])),
        task.lane && fact("task.lane", h("a", { href: laneAddress(task.tube, task.lane) }, task.lane))),
      h("h2", {}, t("task.timeline")),
      h("ol", { class: "timeline" }, timeline(task).map(([name, at]) => h("li", { key: name, class: at > Date.now() ? "ahead" : "" },
        h("strong", {}, t(`task.${name}`)), " ", h("time", { datetime: new Date(at).toISOString() }, fullMoment(at)), " ", h("span", { class: "quiet" }, ago(at))))),
      task.tags?.length && h("p", {}, task.tags.join(", ")),
      task.answer && [h("h2", {}, t("task.answer")), h("pre", { tabindex: 0 }, task.answer)],
      task.body && [h("h2", {}, t("task.body")), h("pre", { tabindex: 0 }, task.body)],
      may(me, "operate") && !task.ended && h("div", { class: "actions" },
        task.state === "buried" ? button("kick", path, show) : task.state !== "taken" && button("bury", path, show),
        button("cancel", path, show)),
    ];
  },
};

const toTasks = () => h("a", { class: "button primary", href: "#/tasks" }, t("page.tasks"));

/** The moments of a task in their order, [name, ms]; what is still to come stands last. */
const timeline = (task) => TIMES.filter((name) => task[name]).map((name) => [name, task[name]]).sort((one, other) => one[1] - other[1]);

/** Links to what a task belongs to: its delivery, job, run, or the runs of the person whose event it is. */
function linked({ links }) {
  const [channel, ...user] = (links.person || "").split(":");
  const found = [
    links.delivery && ["task.of_delivery", `#/message/${encodeURIComponent(links.delivery)}`],
    links.job && ["task.of_job", `#/job/${encodeURIComponent(links.job)}`],
    links.run && ["task.of_run", `#/runs/${encodeURIComponent(links.run)}`],
    links.person && ["task.of_person", `#/runs?${new URLSearchParams({ channel, user: user.join(":") })}`],
  ].filter(Boolean);
  return found.length > 0 && h("div", { class: "actions" }, found.map(([key, href]) => h("a", { class: "button", key, href }, t(key))));
}

function button(verb, path, again) {
  const run = async () => {
    if (!await confirm({ title: t(`tasks.${verb}_title`, { count: 1 }), action: t(`tasks.${verb}`), danger: verb === "cancel" })) return;
    try {
      await api.post(`${path}:${verb}`);
      toast(t("tasks.changed", { count: 1 }));
    } catch (error) {
      toastError(error);
    }
    again();
  };
  return h("button", { key: verb, class: verb === "kick" ? "primary" : verb === "cancel" ? "danger" : "", onclick: run }, t(`tasks.${verb}`));
}
