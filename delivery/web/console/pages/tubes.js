/** The tubes: how many tasks each has in each state, how long they wait, who paused it. A number leads to its tasks. */

import { field, h, paint } from "../lib/dom.js";
import { ago, duration, number, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { explain, notice, tag, toast } from "../lib/states.js";
import { ask } from "../lib/dialog.js";
import { may } from "../lib/frame.js";
import { follow } from "../lib/live.js";
import { table } from "../lib/table.js";

const STATES = ["waiting", "ready", "locked", "taken", "buried"];
// Workers take due tasks within three seconds.
const OVERDUE_MS = 5000;

export default {
  title: "page.tubes",
  right: "inspect",
  render(root, parameters, context) {
    const warning = h("div"), place = h("div");
    paint(root, h("h1", {}, t("page.tubes")), warning, place);
    const load = async ({ signal }) => {
      const { tubes, overdue_ms } = await api.get("/v1/queue/tubes", {}, { signal });
      paint(warning, overdue_ms > OVERDUE_MS && notice("warn", t("tubes.overdue", { time: duration(overdue_ms / 1000) })));
      return { rows: tubes, next: null };
    };
    const list = table(place, {
      label: t("page.tubes"), context, load, id: (tube) => tube.name, columns: columns(may(context.me, "operate"), () => list.reload()),
      whenEmpty: { title: t("tubes.none"), text: t("tubes.none_text") },
    });
    follow(["queue"], () => list.update(), context.signal);
  },
};

function columns(mayChange, again) {
  return [
    { title: t("tubes.name"), width: "2.5fr", cell: nameOf },
    ...STATES.map((state) => ({ title: word("task_state", state), class: "number", cell: (tube) => count(tube, state) })),
    { title: t("tubes.oldest"), class: "number", cell: ({ stats }) => (stats?.oldest_ms ? duration(stats.oldest_ms / 1000) : "–") },
    { title: t("tubes.pace"), class: "number", cell: ({ pace }) => (pace ? t("tubes.per_second", { n: number(pace) }) : "–") },
    ...(mayChange ? [{ title: t("tubes.action"), width: "8rem", cell: (tube) => change(tube, again) }] : []),
  ];
}

const nameOf = ({ name, paused }) => [name, " ", paused && tag("warn", t("tubes.paused")),
  paused && h("div", { class: "quiet" }, t("tubes.paused_by", { by: paused.by, reason: paused.reason, when: ago(paused.at) }))];

function count({ name, stats }, state) {
  const n = stats?.states?.[state] || 0;
  return n ? h("a", { href: `#/tasks?${new URLSearchParams({ tube: name, state })}` }, number(n)) : h("span", { class: "quiet" }, "0");
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
    toast(explain(error), "bad");
  }
}
