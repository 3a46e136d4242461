/** One task: its state and place in its lane, why its last attempt failed, its times and its body; kick, bury, cancel. */

import { h, paint } from "../lib/dom.js";
import { ago, fullMoment, number, t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { empty, explain, notice, toast, withStates } from "../lib/states.js";
import { confirm } from "../lib/dialog.js";
import { may } from "../lib/frame.js";
import { stateTag } from "./tasks.js";

const TIMES = ["due", "expires", "started", "lease", "erred", "buried", "ended"];
const TEXTS = ["tube", "tenant", "kind", "user", "lane", "priority", "attempts", "owner"];

export default {
  title: "page.task",
  right: "inspect",
  render(root, [id], { me, signal }) {
    if (!id) {
      paint(root, h("h1", {}, t("page.task")), empty({ title: t("task.choose"), action: h("a", { class: "button", href: "#/tasks" }, t("page.tasks")) }));
      return;
    }
    const path = `/v1/queue/tasks/${encodeURIComponent(id)}`;
    const show = withStates(root, () => api.get(path, {}, { signal }), (task) => [
      h("h1", {}, t("page.task"), " ", stateTag(task.state)),
      h("p", { class: "quiet" }, task.id),
      task.error && notice("bad", t("task.error", { error: task.error, when: ago(task.erred) })),
      task.waits_for && h("p", {}, t("task.ahead", { count: task.ahead || 1 }), " ", h("a", { href: `#/task/${encodeURIComponent(task.waits_for)}` }, t("task.first"))),
      h("dl", { class: "facts" },
        TEXTS.filter((name) => task[name] !== undefined).map((name) => fact(name, typeof task[name] === "number" ? number(task[name]) : task[name])),
        TIMES.filter((name) => task[name]).map((name) => fact(name, h("span", { title: fullMoment(task[name]) }, ago(task[name]))))),
      task.tags?.length && h("p", {}, task.tags.join(", ")),
      task.answer && [h("h2", {}, t("task.answer")), h("pre", { tabindex: 0 }, task.answer)],
      task.body && [h("h2", {}, t("task.body")), h("pre", { tabindex: 0 }, task.body)],
      may(me, "operate") && !task.ended && h("div", { class: "actions" },
        task.state === "buried" ? button("kick", path, show) : task.state !== "taken" && button("bury", path, show),
        button("cancel", path, show)),
    ]);
  },
};

const fact = (name, value) => h("div", {}, h("dt", {}, t(`task.${name}`)), h("dd", {}, value));

function button(verb, path, again) {
  const run = async () => {
    if (!await confirm({ title: t(`tasks.${verb}_title`, { count: 1 }), action: t(`tasks.${verb}`), danger: verb === "cancel" })) return;
    try {
      await api.post(`${path}:${verb}`);
      toast(t("tasks.changed", { count: 1 }));
    } catch (error) {
      toast(explain(error), "bad");
    }
    again();
  };
  return h("button", { key: verb, class: verb === "kick" ? "primary" : verb === "cancel" ? "danger" : "", onclick: run }, t(`tasks.${verb}`));
}
