/** One task: state, place in its lane, why its last attempt failed, what happened when, what it belongs to; kick, bury, cancel. */

import { h } from "../lib/dom.js";
import { ago, fullMoment, number, t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { empty, fact, may, notice, quoted, toast, toastError, withStates } from "../lib/page.js";
import { confirm } from "../lib/dialog.js";
import { laneAddress } from "./lanes.js";
import { stateTag } from "./tasks.js";

const TIMES = ["put", "due", "started", "erred", "buried", "ended", "lease", "expires"];
const TEXTS = ["tube", "tenant", "kind", "user", "priority", "attempts", "owner"];

export default {
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
