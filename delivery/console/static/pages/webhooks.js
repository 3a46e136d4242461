/** Webhooks: what waits for each, what failed and the last attempts; add, test, send again, delete. */

import { field, h } from "../lib/dom.js";
import { moment, number, t, word } from "../lib/words.js";
import { ApiError, api } from "../lib/api.js";
import { empty, fact, notice, tag, toast, toastError, withStates } from "../lib/page.js";
import { ask, confirm, showOnce } from "../lib/dialog.js";

const EVENTS = ["outcome", "finished", "job"];
const CHANGERS = ["manage", "admin", "operator"];
const AGAIN_MS = 10000;

const path = (webhook, rest = "") => `/v1/webhooks/${encodeURIComponent(webhook.id)}${rest}`;

export default {
  title: "page.webhooks",
  right: ["people", "key"],
  render(root, parameters, { me, signal }) {
    const mayChange = CHANGERS.some((scope) => me.scopes.includes(scope));
    const again = () => show();
    const create = mayChange && h("button", { class: "primary", onclick: () => add(again) }, t("webhooks.add"));
    const show = withStates(root, () => load(signal), (found) => [
      h("h1", {}, t("page.webhooks")),
      found.length === 0 ? empty({ title: t("webhooks.none"), text: t("webhooks.none_text"), action: create }) : h("div", { class: "actions" }, create),
      h("ul", { class: "plain-list" }, found.map((one) => card(one, mayChange, again))),
    ]);
    const timer = setInterval(() => document.visibilityState === "visible" && show(), AGAIN_MS);
    return () => clearInterval(timer);
  },
};

/** Returns the webhooks with their attempts; without those that have been deleted meanwhile. */
async function load(signal) {
  const { webhooks } = await api.get("/v1/webhooks", {}, { signal });
  const states = await Promise.all(webhooks.map((one) => api.get(path(one, "/attempts"), {}, { signal }).catch(unlessGone)));
  return webhooks.map((one, place) => states[place] && { ...one, ...states[place] }).filter(Boolean);
}

function unlessGone(error) {
  if (error.status !== 404) throw error;
}

function card(webhook, mayChange, again) {
  return h("li", { class: "panel", key: webhook.id },
    h("h2", { class: "cut" }, webhook.url),
    webhook.disabled_at && notice("warn", t("webhooks.disabled", { when: moment(webhook.disabled_at) })),
    h("dl", { class: "facts" },
      fact("webhooks.events", webhook.events.map((event) => [tag("", word("webhook_event", event)), " "])),
      fact("webhooks.waiting", number(webhook.waiting)),
      fact("webhooks.failed", webhook.dead_letters ? tag("bad", number(webhook.dead_letters)) : "0"),
      fact("webhooks.created", moment(webhook.created_at))),
    h("details", {}, h("summary", {}, t("webhooks.attempts", { count: webhook.attempts.length })),
      webhook.attempts.length ? h("ul", { class: "plain-list reasons" }, webhook.attempts.map(attempt)) : h("p", {}, t("webhooks.no_attempts"))),
    mayChange && h("div", { class: "actions" },
      h("button", { key: "test", onclick: () => test(webhook, again) }, t("webhooks.test")),
      (webhook.dead_letters > 0 || webhook.disabled_at) && h("button", { key: "replay", onclick: () => replay(webhook, again) }, t(webhook.disabled_at ? "webhooks.enable" : "webhooks.replay")),
      h("button", { key: "delete", class: "danger", onclick: () => remove(webhook, again) }, t("webhooks.delete"))));
}

const attempt = (made) => h("li", {},
  h("span", {}, moment(made.at)),
  tag(made.succeeded ? "good" : "bad", outcome(made)),
  h("span", {}, word("webhook_event", made.type)),
  h("span", { class: "quiet" }, t("webhooks.attempt", { n: made.attempt, ms: made.duration_ms })));

/** Returns the status of the response; without one, why there is none. */
function outcome({ succeeded, status, error }) {
  if (status === null) return word("webhook_error", error);
  return succeeded ? t("webhooks.accepted", { status: String(status) }) : t("webhooks.refused", { status: String(status) });
}

async function add(again) {
  const made = await ask({
    title: t("webhooks.add"), action: t("webhooks.add"),
    fields: [
      field({ label: t("webhooks.url"), hint: t("webhooks.url_hint") }, h("input", { name: "url", type: "url", required: true, maxlength: 2048, autocomplete: "off" })),
      h("fieldset", {}, h("legend", {}, t("webhooks.events")), EVENTS.map((event) =>
        h("label", { class: "check" }, h("input", { type: "checkbox", name: `event ${event}`, checked: true }), word("webhook_event", event)))),
    ],
    submit: ({ url, ...chosen }) => {
      const events = EVENTS.filter((event) => chosen[`event ${event}`]);
      if (!events.length) throw new ApiError({ title: t("webhooks.no_event") });
      return api.post("/v1/webhooks", { url, events });
    },
  });
  if (!made) return;
  await showOnce({ title: t("webhooks.added"), label: t("webhooks.secret"), secret: made.secret });
  again();
}

/** Does something with a webhook, says what became of it and shows the new state. */
async function change(work, again) {
  try {
    toast(...[await work()].flat());
  } catch (error) {
    toastError(error);
  }
  again();
}

const test = (webhook, again) => change(async () => {
  const made = await api.post(path(webhook, "/test"));
  return [t("webhooks.tested", { outcome: outcome(made) }), made.succeeded ? "good" : "bad"];
}, again);

/** Sends again what was given up, which also enables a webhook whose receiver was gone. */
async function replay(webhook, again) {
  const count = webhook.dead_letters;
  if (count && !await confirm({ title: t("webhooks.replay_title", { count }), text: webhook.url, action: t("webhooks.replay"), count })) return;
  await change(async () => t("webhooks.replayed", { count: (await api.post(path(webhook, "/replay"))).replayed }), again);
}

async function remove(webhook, again) {
  const text = t("webhooks.delete_text", { url: webhook.url, count: webhook.waiting });
  if (!await confirm({ title: t("webhooks.delete_title"), text, action: t("webhooks.delete"), danger: true })) return;
  await change(async () => t("webhooks.deleted", { count: (await api.del(path(webhook))).dropped }), again);
}
