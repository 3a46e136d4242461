/** Signing in: at an identity provider, with a link of the bot, with a code by mail, with an API key. */

import { field, h, paint, svg, values } from "../lib/dom.js";
import { moment, rich, t } from "../lib/words.js";
import { api } from "../lib/api.js";
import { explainOne, notice, submits } from "../lib/page.js";

export default {
  title: "page.sign_in",
  right: null,
  render(root, [link], context) {
    if (context.query.done) return context.signedIn();
    if (link) byLink(root, link, context);
    else byMailOrKey(root, context);
  },
};

const SESSIONS = "/v1/sessions";
const PROVIDERS = `${SESSIONS}/providers`;
const isSignIn = true;

/** The link works once, so a press of the button uses it and not a preview of the address. */
function byLink(root, link, { signedIn }) {
  const form = h("form", { class: "panel", onsubmit: submits(async () => {
    await api.post(SESSIONS, { link }, { isSignIn });
    await signedIn();
  }) }, h("p", {}, t("sign_in.link_text")), h("button", { class: "primary" }, t("sign_in.link_button")));
  paint(root, head(), form, other());
}

const head = () => h("div", { class: "brand" },
  svg("svg", { viewBox: "0 0 16 16", width: 56, height: 56, "aria-hidden": "true" },
    svg("rect", { width: 16, height: 16, rx: 4 }), svg("path", { d: "M8 3 4 13h2l.7-2h2.6l.7 2h2z" })),
  h("h1", {}, t("page.sign_in")), h("p", { class: "quiet" }, t("sign_in.about")));

const other = () => h("p", {}, h("a", { href: "#/sign-in" }, t("sign_in.other")));

function byMailOrKey(root, context) {
  const { bind, problem, left } = context.query;
  const providers = h("div");
  if (!bind) showProviders(providers, left);
  paint(root, head(),
    h("div", {},
      context.hasEnded && notice("warn", t("sign_in.ended")),
      problem && notice("bad", explainOne({ code: problem, message: t("sign_in.failed") })),
      bind && notice("info", t("sign_in.bind")),
      providers,
      h("section", { class: "panel" }, mailForm(root, context)),
      h("details", { class: "panel" }, h("summary", {}, t("sign_in.with_key")), keyForm(context))));
}

/** `left`: the person has just signed out of Ada, and perhaps not yet of the provider. */
async function showProviders(root, left) {
  const { providers } = await api.get(PROVIDERS, {}, { isSignIn }).catch(() => ({ providers: [] }));
  const link = (name, path, cls, text) => h("a", { class: cls, href: `${PROVIDERS}/${encodeURIComponent(name)}${path}` }, text);
  if (providers.length) paint(root, h("section", { class: "panel" }, providers.map(({ name, title }) => [
    h("p", {}, link(name, "", "button primary", t("sign_in.with", { title }))),
    left && h("p", {}, link(name, "/sign-out", "", t("sign_in.leave", { title })))])));
}

function mailForm(root, context) {
  return h("form", { onsubmit: submits(async (form) => {
    const { email } = values(form);
    const { code_id, expires_at } = await api.post(`${SESSIONS}/codes`, { email }, { isSignIn });
    askCode(root, code_id, { email: h("strong", {}, email), time: moment(expires_at) }, context);
  }) },
  field({ label: t("sign_in.email"), hint: t("sign_in.email_hint") }, h("input", { name: "email", type: "email", autocomplete: "email", required: true })),
  h("button", { class: "primary" }, t("sign_in.send_code")));
}

function askCode(root, code_id, sent, context) {
  const { query, signedIn } = context;
  const form = h("form", { class: "panel", onsubmit: submits(async (one) => {
    await api.post(SESSIONS, { code_id, code: values(one).code, bind_account: Boolean(query.bind) }, { isSignIn });
    await signedIn();
  }) },
  notice("info", rich("sign_in.code_sent", sent)),
  field({ label: t("sign_in.code") }, h("input", { name: "code", autocomplete: "one-time-code", autocapitalize: "characters", spellcheck: "false", required: true })),
  h("button", { class: "primary" }, t("page.sign_in")));
  paint(root, head(), form, h("p", {}, h("a", { href: "#/sign-in", onclick: () => byMailOrKey(root, { ...context, query: {} }) }, t("sign_in.other"))));
  form.elements.code.focus();
}

function keyForm({ signedIn }) {
  return h("form", { onsubmit: submits(async (form) => {
    await api.post(SESSIONS, { key: values(form).key }, { isSignIn });
    await signedIn();
  }) },
  field({ label: t("sign_in.key"), hint: t("sign_in.key_hint") }, h("input", { name: "key", type: "password", autocomplete: "off", required: true })),
  h("button", {}, t("page.sign_in")));
}
