/** The tubes: how many tasks each has in each state, how long they wait, who paused it. A number leads to its tasks. */

import { h } from "../lib/dom.js";
import { ago, duration, number, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { empty, explain, notice, tag, toast, withStates } from "../lib/states.js";
import { ask } from "../lib/dialog.js";
import { field } from "../lib/dom.js";
import { may } from "../lib/frame.js";

const STATES = ["waiting", "ready", "locked", "taken", "buried"];
const AGAIN_MS = 5000;
// Workers take due tasks within three seconds.
const OVERDUE_MS = 5000;

export default {
  title: "page.tubes",
  right: "inspect",
  render(root, parameters, { me, signal }) {
    const show = withStates(root, () => api.get("/v1/queue/tubes", {}, { signal }), (found) => [
      h("h1", {}, t("page.tubes")),
      found.overdue_ms > OVERDUE_MS && notice("warn", t("tubes.overdue", { time: duration(found.overdue_ms / 1000) })),
      found.tubes.length === 0 && empty({ title: t("tubes.none"), text: t("tubes.none_text") }),
      h("ul", { class: "cards tubes" }, found.tubes.map((tube) => card(tube, may(me, "operate"), () => show()))),
    ]);
    const timer = setInterval(() => document.visibilityState === "visible" && show(), AGAIN_MS);
    return () => clearInterval(timer);
  },
};

function card(tube, mayChange, again) {
  const states = tube.stats?.states || {};
  return h("li", { class: "card", key: tube.name },
    h("h2", {}, tube.name, " ", tube.paused && tag("warn", t("tubes.paused"))),
    tube.paused && h("p", {}, t("tubes.paused_by", { by: tube.paused.by, reason: tube.paused.reason, when: ago(tube.paused.at) })),
    h("dl", { class: "facts" },
      STATES.map((state) => h("div", {}, h("dt", {}, word("task_state", state)), h("dd", {}, count(tube.name, state, states[state] || 0)))),
      h("div", {}, h("dt", {}, t("tubes.oldest")), h("dd", {}, tube.stats?.oldest_ms ? duration(tube.stats.oldest_ms / 1000) : "–")),
      h("div", {}, h("dt", {}, t("tubes.pace")), h("dd", {}, tube.pace ? t("tubes.per_second", { n: number(tube.pace) }) : t("tubes.unlimited")))),
    mayChange && h("div", { class: "actions" }, tube.paused
      ? h("button", { key: "resume", class: "primary", onclick: () => resume(tube.name, again) }, t("tubes.resume"))
      : h("button", { key: "pause", onclick: () => pause(tube.name, again) }, t("tubes.pause"))));
}

const count = (tube, state, n) => (n ? h("a", { href: `#/tasks?${new URLSearchParams({ tube, state })}` }, number(n)) : "0");

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
