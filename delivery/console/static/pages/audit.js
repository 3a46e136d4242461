/** The audit: start one, how far it is, what it found, and a repair whose effect is shown before. */

import { h } from "../lib/dom.js";
import { ago, number, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { empty, may, notice, tag, toastError, withStates } from "../lib/page.js";
import { confirm } from "../lib/dialog.js";

const AGAIN_MS = 2000;
const KINDS = { running: "info", done: "good", failed: "bad", broken_off: "warn" };

export default {
  title: "page.audit",
  right: "inspect",
  render(root, parameters, { me, signal }) {
    const mayChange = may(me, "operate");
    let isRunning = true;
    const show = withStates(root, () => api.get("/v1/audits", {}, { signal }), ({ run, findings }) => {
      isRunning = run?.state === "running";
      return [
        h("h1", {}, t("page.audit")),
        h("p", { class: "quiet" }, t("audit.about")),
        mayChange && !isRunning && h("div", { class: "actions" }, h("button", { class: "primary", onclick: () => attempt(() => api.post("/v1/audits"), show) }, t("audit.start"))),
        run ? progress(run) : empty({ title: t("audit.none") }),
        h("ul", { class: "cards" }, findings.map((one) => card(run, one, mayChange, show))),
      ];
    });
    const timer = setInterval(() => isRunning && document.visibilityState === "visible" && show(), AGAIN_MS);
    return () => clearInterval(timer);
  },
};

async function attempt(work, again) {
  try {
    await work();
  } catch (error) {
    toastError(error);
  }
  again();
}

const progress = (run) => h("section", { class: "panel" },
  h("p", {}, tag(KINDS[run.state], word("audit_state", run.state)), " ", t("audit.started", { by: run.by, when: ago(run.started) })),
  run.state === "running" && h("progress", { max: Math.max(run.all_keys, 1), value: run.keys, "aria-label": t("page.audit") }),
  h("p", {}, t("audit.read", { keys: number(run.keys), tasks: number(run.tasks), deliveries: number(run.deliveries) })),
  run.reason && notice("bad", run.reason),
  run.state === "done" && (run.violations ? notice("warn", t("audit.found", { count: run.violations })) : notice("good", t("audit.sound"))));

const card = (run, one, mayChange, again) => h("li", { class: "card", key: String(one.number) },
  h("h2", {}, one.rule, " ", one.changes && tag("good", t("audit.repaired"))),
  h("p", { class: "mono" }, one.key),
  h("p", {}, t("audit.violation", one)),
  one.changes && h("p", { class: "quiet" }, one.changes.join("; ") || t("audit.right_by_now")),
  !one.repair && h("p", { class: "quiet" }, t("audit.no_repair", one)),
  mayChange && one.repair && !one.changes && h("div", { class: "actions" }, h("button", { onclick: () => repair(run, one, again) }, t("audit.repair"))));

async function repair(run, one, again) {
  const text = h("dl", { class: "facts" }, [["audit.key", one.key], ["audit.is", one.found], ["audit.should", one.wanted], ["audit.step", one.repair]]
    .map(([name, value]) => h("div", {}, h("dt", {}, t(name)), h("dd", {}, value))));
  if (await confirm({ title: t("audit.repair_title", one), text, action: t("audit.repair") })) await attempt(() => api.post("/v1/audits:repair", { run: run.id, number: one.number }), again);
}
