/** The accounts of the channels: from where each is set, as whom it sends, what its provider said; test it, change it, start its courier again. */

import { field, h } from "../lib/dom.js";
import { ago, fullMoment, moment, number, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { fact, notice, quoted, tag, toast, toastError, withStates } from "../lib/page.js";
import { ask } from "../lib/dialog.js";
import { follow } from "../lib/live.js";

const CONSOLE = "the console";
const GOOD = ["running", "starting"];

export default {
  title: "page.accounts",
  right: "inspect",
  render(root, parameters, { me, signal }) {
    const mayChange = me.scopes.includes("operator");
    const show = withStates(root, async () => (await api.get("/v1/accounts", {}, { signal })).accounts, (found) => [
      h("h1", {}, t("page.accounts")),
      h("p", { class: "quiet" }, t("accounts.about")),
      h("ul", { class: "plain-list" }, found.map((one) => card(one, mayChange, show))),
    ]);
    follow(["processes"], show, signal);
  },
};

function card(one, mayChange, again) {
  const process = one.processes[0], isThere = one.processes.some((each) => GOOD.includes(each.state));
  const isSet = one.settings.some(({ source }) => source);
  return h("li", { class: "panel", key: one.channel },
    h("h2", {}, word("channel", one.channel), " ", state(process, isSet)),
    process?.reason && notice("bad", quoted(process.reason)),
    h("dl", { class: "facts" },
      fact("accounts.account", one.account && h("span", { class: "mono" }, one.account)),
      fact("accounts.answer", one.answered && answer(one)),
      process && process.balance !== null && fact("accounts.balance", process.balance < (process.low_balance || 0) ? tag("bad", number(process.balance)) : number(process.balance)),
      process && (process.throttles.length > 0 || process.rate) && fact("accounts.limits", [
        process.throttles.map(({ until }) => h("div", {}, t("accounts.throttled", { when: ago(until) }))),
        process.rate && h("div", {}, t("processes.rate", { rate: number(process.rate) }))]),
      fact("accounts.set", h("ul", { class: "plain-list" }, one.settings.map(({ name, source }) => h("li", {}, h("code", {}, name), " ",
        source ? t("accounts.from", { source: sourceOf(source) }) : h("span", { class: "quiet" }, t("accounts.not_set")))))),
      one.changed && fact("accounts.changed", t("accounts.by", { when: moment(one.changed), by: one.by }))),
    mayChange && h("div", { class: "actions" },
      one.settings.some(({ may_change }) => may_change) && h("button", { key: "set", onclick: () => change(one, again) }, t(isSet ? "accounts.change" : "accounts.set_up")),
      isThere && h("button", { key: "test", onclick: () => act(() => api.post(`/v1/processes/${process.id}/requests`, { request: "test" }), "accounts.testing") }, t("accounts.test")),
      isSet && !isThere && h("button", { key: "start", class: "primary", onclick: () => act(() => api.post("/v1/processes:start", { kind: "courier", name: one.channel }), "processes.starting") }, t("processes.start"))));
}

const answer = (one) => [
  tag(one.is_refused ? "bad" : "good", t(one.is_refused ? "accounts.refused" : "accounts.accepted")), " ",
  h("time", { datetime: one.answered, title: fullMoment(one.answered) }, ago(one.answered)),
  one.is_refused && h("div", {}, quoted(one.answer)),
];

const state = (process, isSet) => (process
  ? tag(GOOD.includes(process.state) ? "good" : "bad", word("process_state", process.state))
  : tag("", t(isSet ? "accounts.no_process" : "accounts.not_set_up")));

function sourceOf(source) {
  if (source === CONSOLE) return t("accounts.console");
  return source === "the environment" ? t("accounts.environment") : source;
}

/** Asks for something that is done within seconds, and says so. */
async function act(work, said) {
  try {
    await work();
    toast(t(said));
  } catch (error) {
    toastError(error);
  }
}

/** Asks for new texts; what stays empty stays as it is. A stored text is never shown. */
async function change(one, again) {
  const own = one.settings.filter(({ may_change }) => may_change);
  const done = await ask({
    title: t("accounts.change_title", { channel: word("channel", one.channel) }), text: t("accounts.change_text"), action: t("accounts.save"),
    fields: own.map(({ name, source }) => [
      field({ label: name, hint: source ? t("accounts.keep") : "" }, h("input", { name: `settings.${name}`, type: "password", maxlength: 4096, autocomplete: "off", spellcheck: "false" })),
      source && h("label", { class: "check" }, h("input", { type: "checkbox", name: `remove ${name}` }), t("accounts.remove", { name })),
    ]),
    submit: (values) => {
      const texts = own.map(({ name }) => [name, values[`remove ${name}`] ? "" : values[`settings.${name}`].trim() || null]);
      const given = texts.filter(([, text]) => text !== null);
      return given.length ? api.patch(`/v1/accounts/${one.channel}`, { version: one.version, settings: Object.fromEntries(given) }) : null;
    },
  });
  if (done?.version) toast(t("accounts.saved"));
  again();
}
