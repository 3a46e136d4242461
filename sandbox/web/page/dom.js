// Requests to the sandbox, and elements. Texts become text nodes only: they are untrusted.

export const at = (id) => document.getElementById(id);
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** A refusal of the sandbox: `code`, and the sandbox's own words as the message. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail);
    Object.assign(this, { status, code: problem.code });
  }
}

/** Returns the JSON of a response, null if it has none. Throws Refusal, or TypeError if the sandbox does not respond. */
export async function request(method, path, body, more = {}) {
  const response = await fetch(path, { method, body: body && encoded(body), ...more });
  if (!response.ok) throw new Refusal(response.status, await response.json());
  return response.status === 204 ? null : response.json();
}

/** Returns a body as JSON; as a form if one of its values is a file. */
function encoded(body) {
  if (!Object.values(body).some((one) => one instanceof File)) return JSON.stringify(body);
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) form.append(name, value);
  return form;
}

/** Returns an element with these properties and children; a text is a child too. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export const button = (text, onclick) => element("button", { type: "button", onclick }, text);

export function row(...cells) {
  return element("tr", {}, ...cells.map((cell) => element("td", {}, cell ?? "")));
}

/** Returns the filled fields of a form by name; those in `numbers` as numbers. */
export function filled(form, numbers = []) {
  const values = [...new FormData(form)].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value);
  return Object.fromEntries(values.map(([name, value]) => [name, numbers.includes(name) ? Number(value) : value]));
}

export function setConnected(isConnected) {
  at("disconnected").hidden = isConnected;
}
