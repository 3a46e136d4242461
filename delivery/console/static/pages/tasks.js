/**
 * Tasks of the queue by state, tube, person, kind, lane and tag, from the indexes; kick, bury and cancel what is selected, or
 * everything that the filters find, up to the moment at which it was counted.
 */

import { h, paint } from "../lib/dom.js";
import { ago, fullMoment, moment, number, rich, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { may, quoted, tag, toast, toastError } from "../lib/page.js";
import { table } from "../lib/table.js";
import { bulk, eachOf } from "../lib/dialog.js";

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
