/** Elements without innerHTML. Text is always a text node. */

/**
 * Returns an element: h("button", {class: "primary", onclick: save}, "Save").
 *
 * Attributes: a name that begins with "on" is a handler; `style` and `dataset` are objects; true writes the bare attribute,
 * false, null and undefined leave it out. `value`, `checked` and `selected` set what a person sees. `key` names the element
 * among its siblings for `paint`; `keep: true` lets `paint` leave its inside alone.
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) set(element, name, value);
  element.append(...nodes(children));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** Returns an SVG element; otherwise as `h`. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) set(element, name, value);
  element.append(...nodes(children));
  return element;
}

/** What a person changes by a click: `paint` takes it back, too. */
const CLICKED = ["checked", "indeterminate", "selected"];

function set(element, name, value) {
  if (name === "key" || name === "keep") element[name] = value;
  else if (name.startsWith("on")) {
    element[name] = value;
    element.handlers = { ...element.handlers, [name]: value };
  }
  else if (name === "style") for (const [property, one] of Object.entries(value)) element.style.setProperty(property, one);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (CLICKED.includes(name)) give(element, name, Boolean(value));
  else if (value === false || value === null || value === undefined) return;
  else if (name === "value") give(element, name, value);
  else element.setAttribute(name, value === true ? "" : value);
}

function give(element, name, value) {
  element[name] = value;
  element.given = { ...element.given, [name]: value };
}

/** Returns the nodes of nested lists; null, undefined and false are left out, all else is text. */
function nodes(children) {
  return children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false)
    .map((one) => (one instanceof Node ? one : document.createTextNode(String(one))));
}

/**
 * Shows these children in `parent` and changes only what differs, so focus, selection, scroll position and what is being
 * typed stay. Children with a `key` are recognised wherever they stand.
 */
export function paint(parent, ...children) {
  const focused = document.activeElement;
  morphChildren(parent, nodes(children));
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

function morphChildren(parent, wanted) {
  const keyed = new Map();
  for (const child of parent.childNodes) if (child.key !== undefined) keyed.set(child.key, child);
  const kept = new Set(wanted.map((one) => keyed.get(one.key)).filter(Boolean));
  let place = parent.firstChild;
  for (const one of wanted) {
    let old = one.key === undefined ? place : keyed.get(one.key);
    while (one.key === undefined && old && kept.has(old)) old = old.nextSibling;
    if (old && isAlike(old, one)) {
      if (old === place) place = place.nextSibling;
      else parent.insertBefore(old, place);
      morph(old, one);
    } else {
      parent.insertBefore(one, place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

const isAlike = (old, one) => old === one || (old.nodeName === one.nodeName && old.key === one.key && old.type === one.type);

function morph(old, one) {
  if (old === one) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== one.data) old.data = one.data;
    return;
  }
  morphAttributes(old, one);
  if (!(old.keep && one.keep)) morphChildren(old, [...one.childNodes]);
}

function morphAttributes(old, one) {
  for (const { name } of [...old.attributes]) {
    const stays = (name === "open" && old.nodeName === "DETAILS") || (name === "tabindex" && old === document.activeElement); // or it loses the focus
    if (!stays && !one.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of one.attributes) {
    if (old.getAttribute(name) === value) continue;
    if (name === "style") old.style.cssText = value; // the policy of the page lets no attribute set it
    else old.setAttribute(name, value);
  }
  for (const name of Object.keys({ ...old.handlers, ...one.handlers })) old[name] = one.handlers?.[name] || null;
  old.handlers = one.handlers;
  for (const [name, value] of Object.entries(one.given || {})) {
    if (old.given?.[name] !== value && !(name === "value" && old === document.activeElement)) old[name] = value;
  }
  old.given = one.given;
}

let last = 0;
/** Returns an id that no other element of the page has, for label, aria-describedby and the like. */
export const newId = (name = "e") => `${name}-${++last}`;

/**
 * Returns a labelled field. `input` gets an id, its hint and its error: field({label: t("…"), hint, error}, h("input", {name})).
 * `showErrors` writes errors of the API beside the fields of the same `name`. `pick`: the words of the button that chooses files.
 */
export function field({ label, hint, error, wide, pick }, input) {
  input.id ||= newId(input.name || "field");
  const hintId = `${input.id}-hint`, errorId = `${input.id}-error`;
  const descriptions = [hint && hintId, error && errorId].filter(Boolean).join(" ");
  if (descriptions) input.setAttribute("aria-describedby", descriptions);
  if (error) input.setAttribute("aria-invalid", "true");
  return h("div", { class: wide ? "field wide" : "field" },
    h("label", { for: input.id }, label),
    hint && h("p", { class: "hint", id: hintId }, hint),
    error && h("p", { class: "field-error", id: errorId }, error),
    pick ? picker(input, pick) : input);
}

/** Lays an input for files over a button with our words: the browser has its own in its own language. */
function picker(input, words) {
  const name = h("span", { class: "quiet small cut", "aria-hidden": "true" });
  input.addEventListener("change", () => { name.textContent = [...input.files].map((one) => one.name).join(", "); });
  return h("div", { class: "picker" }, input, h("span", { class: "button", "aria-hidden": "true" }, words), name);
}

/** Returns what was typed into a form, by name: texts without outer spaces, booleans for checkboxes. */
export function values(form) {
  const found = {};
  for (const input of form.elements) {
    if (!input.name || (input.type === "radio" && !input.checked)) continue;
    found[input.name] = input.type === "checkbox" ? input.checked : input.value.trim();
  }
  return found;
}

/**
 * Copies a text; also over plain HTTP, where there is no clipboard. Returns whether it worked. While a dialog is open,
 * nothing outside it can be selected.
 */
export async function copy(text) {
  if (await navigator.clipboard?.writeText(text).then(() => true, () => false)) return true;
  const focused = document.activeElement;
  const area = h("textarea", { value: text, readonly: true, class: "off-screen" });
  (document.querySelector("dialog[open]") || document.body).append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return isCopied;
}
