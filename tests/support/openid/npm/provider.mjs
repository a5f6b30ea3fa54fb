// npm's oidc-provider with its forms for development: whoever types a name is that person, in the group "staff",
// until its administrator puts them into another one: GET /administrator/erika/inspectors.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, port, back, out] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(createRequire(`${modules}/`).resolve("oidc-provider")).href);
const groups = new Map();
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: "lapwing",
    client_secret: "a secret/with: signs",
    redirect_uris: [back],
    post_logout_redirect_uris: [out],
    grant_types: ["authorization_code", "refresh_token"],
  }],
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
  scopes: ["openid", "profile", "offline_access"],
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, preferred_username: id, groups: [groups.get(id) ?? "staff"] }),
  }),
  cookies: { keys: ["of a test"] },
});
provider.use(async (context, next) => {
  const [, place, name, group] = context.path.split("/");
  if (place !== "administrator") return next();
  groups.set(name, group);
  context.body = "done";
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
