// A certified OpenID provider for the tests: node provider.mjs PORT REDIRECT_URI LOGOUT_URI. Prints one line when it listens.
import { Provider } from "oidc-provider";

const [port, redirectUri, logoutUri] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const PEOPLE = {
  anna: { email: "anna@example.org", email_verified: true, groups: ["teachers"] },
  boris: { email: "boris@example.org", email_verified: false, groups: [] },
};

const provider = new Provider(issuer, {
  clients: [{
    client_id: "ada", client_secret: "s:e c+r%et", redirect_uris: [redirectUri], post_logout_redirect_uris: [`${new URL(redirectUri).origin}/`],
    backchannel_logout_uri: logoutUri, backchannel_logout_session_required: true,
  }],
  claims: { openid: ["sub", "sid"], email: ["email", "email_verified"], profile: ["groups"] },
  cookies: { keys: ["of the tests"] },
  features: { backchannelLogout: { enabled: true } },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...PEOPLE[id] }) }),
  pkce: { required: () => true },
  fetch: (url, { dispatcher, ...options }) => fetch(url, options), // its own refuses this machine, where the tests run
});
provider.listen(Number(port), "127.0.0.1", () => console.log(`listens at ${issuer}`));
