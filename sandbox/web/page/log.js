// The messages of a chat: only those that changed are replaced, so the place in the list and the focus stay.

const NEAR = 40;  // pixels from the end in which the list follows new messages

/** Shows the messages; `version` is what else they depend on, `make` returns the element of one. */
export function update(log, messages, version, make) {
  const follows = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
  const keys = messages.map((message) => `${message.from}-${message.id}`);
  const shown = new Map([...log.children].map((one) => [one.dataset.key, one]));
  for (const [key, one] of shown) if (!keys.includes(key)) one.remove();
  messages.forEach((message, position) => place(log, position, shown.get(keys[position]), keys[position], message, version, make));
  if (follows) log.scrollTop = log.scrollHeight;
}

function place(log, position, old, key, message, version, make) {
  const state = version + JSON.stringify(message);
  let current = old;
  if (!old || old.state !== state) {
    current = make(message);
    Object.assign(current, { state }).dataset.key = key;
    if (old) replace(log, old, current);
  }
  if (log.children[position] !== current) log.insertBefore(current, log.children[position] || null);
}

/** Replaces a message. If one of its buttons has the focus, the button in its place gets it. */
function replace(log, old, current) {
  const index = [...old.querySelectorAll("button, a")].indexOf(document.activeElement);
  old.replaceWith(current);
  if (index < 0) return;
  const buttons = [...current.querySelectorAll("button, a")];
  (buttons[index] || buttons.at(-1) || log).focus({ preventScroll: true });
}
