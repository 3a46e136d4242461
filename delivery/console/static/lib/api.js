/** Calls of the API with the cookie of the session. */

const RETRY_PAUSES = [1000, 2000, 4000, 8000];
const SLOW = 5000;
const AWAY = new Set([502, 503, 504]);

/** A refusal of the API: a problem document. `errors` is a list of {path, code, message}. */
export class ApiError extends Error {
  constructor({ status, code, title, detail, errors }, retryAfter) {
    super(detail || title);
    Object.assign(this, { status, code, title, detail, errors: errors || [], retryAfter });
  }
}

/** No response: the network, or Ada is not running. */
export class NoResponse extends Error {}

const watchers = new Set();
let connection = "online";

/** Calls `watch` with "online", "slow", "api_away" or "store_away" whenever that changes. Returns a function that ends it. */
export function watchConnection(watch) {
  watchers.add(watch);
  return () => watchers.delete(watch);
}

const PROBE_PAUSE = 2000;
let probing = 0;

export const isAway = (state = connection) => state.endsWith("_away");

function setConnection(state) {
  if (state === connection) return;
  connection = state;
  clearInterval(probing);
  if (isAway()) probing = setInterval(probe, PROBE_PAUSE);
  for (const watch of watchers) watch(state);
}

/** Asks whether there is a response again, so that the page need not wait for the next request. */
async function probe() {
  const response = await fetch("/v1/me", { cache: "no-store" }).catch(() => null);
  if (response && !AWAY.has(response.status)) setConnection("online");
}
window.addEventListener("online", probe);

let signedOut = () => {};
/** `handle` is called when a response says that there is no session any more. */
export const onSignedOut = (handle) => { signedOut = handle; };

/** Returns the options of requests that are one entry of the action log together. */
export const inOneAction = (reason) => ({ headers: { "Ada-Action": randomKey(), ...(reason && { "Ada-Reason": encodeURIComponent(reason) }) } });

/** Returns 128 random bits as hex digits; works over plain HTTP, where crypto.randomUUID does not exist. */
export function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");
}

/** Returns an address with its query; empty and missing values are left out, a list is repeated. */
export function address(path, query = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") parameters.append(name, one);
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

async function once(method, url, { body, headers, signal }) {
  const isText = typeof body === "string" || body instanceof Blob;
  const response = await fetch(url, {
    method, signal, credentials: "same-origin", redirect: "error",
    headers: { Accept: "application/json", ...(body === undefined || isText ? {} : { "Content-Type": "application/json" }), ...headers },
    body: body === undefined || isText ? body : JSON.stringify(body),
  }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new NoResponse(error.message);
  });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ status: response.status, code: `HTTP_${response.status}`, title: response.statusText }));
  throw new ApiError({ ...problem, status: response.status }, Number(response.headers.get("Retry-After")) || undefined);
}

const stateOf = (error) => {
  if (error instanceof NoResponse) return "api_away";
  if (error instanceof ApiError && AWAY.has(error.status)) return error.code?.startsWith("STORE") ? "store_away" : "api_away";
  return undefined;
};

function pause(duration, signal) {
  return new Promise((done, failed) => {
    const timer = setTimeout(done, duration);
    signal?.addEventListener("abort", () => { clearTimeout(timer); failed(signal.reason); }, { once: true });
  });
}

/** GETs are repeated until there is a response, because they change nothing; what writes fails at once, and its caller says so. */
async function request(method, url, options = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const timer = setTimeout(() => connection === "online" && !options.isUpload && setConnection("slow"), SLOW);
    try {
      const response = await once(method, url, options);
      setConnection("online");
      return response;
    } catch (error) {
      const away = stateOf(error);
      clearTimeout(timer);
      if (away) setConnection(away);
      else if (error instanceof ApiError || connection === "slow") setConnection("online");
      if (error.status === 401 && !options.isSignIn) signedOut();
      if (!away || method !== "GET" || options.tries <= attempt + 1) throw error;
      await pause(RETRY_PAUSES[Math.min(attempt, RETRY_PAUSES.length - 1)], options.signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

async function json(method, path, { query, ...options } = {}) {
  const response = await request(method, address(path, query), options);
  if (response.status === 204) return null;
  return (response.headers.get("Content-Type") || "").includes("json") ? response.json() : response.text();
}

const write = (method) => (path, body, { idempotencyKey, ...options } = {}) =>
  json(method, path, { ...options, body, headers: { "Idempotency-Key": idempotencyKey || randomKey(), ...options.headers } });

/**
 * api.get("/v1/users", {limit: 10}, {signal}); api.post(path, body, {idempotencyKey, query, signal}); likewise put, patch, del.
 * `isUpload`: the body may take its time. All return the decoded body and raise `ApiError` or `NoResponse`. Pass the same `idempotencyKey` when a person presses again.
 */
export const api = {
  get: (path, query, options) => json("GET", path, { ...options, query }),
  post: write("POST"),
  put: write("PUT"),
  patch: write("PATCH"),
  del: (path, query, options) => write("DELETE")(path, undefined, { ...options, query }),
};
