import { createHash } from "node:crypto";
import type { User } from "../model/records";
import { DAY, v1Time } from "../model/times";
import { firstId, nextId, type SeedContext } from "./context";
import { asciiWord } from "./people";
import { firstNames, lastNames } from "./words";

const GROUP_COUNT = 3;

/** The first user is the admin, the next four carry the stories, the last one is deactivated. */
export function seedUsers(context: SeedContext): void {
  const random = context.random.stream("users");
  const count = random.int(6, 12);
  for (let index = 0; index < count; index++) {
    const user = makeUser(context, `${random.pick(firstNames)} ${random.pick(lastNames)}`, {
      admin: index === 0,
      active: index < count - 1,
    });
    const joined = context.now - random.int(560, 1_400) * DAY;
    user.created = v1Time(joined);
    user.last_login = v1Time(context.now - random.int(1, 90_000));
    user.modified = random.chance(0.2) ? null : v1Time(joined + random.int(1, 500) * DAY);
    context.company.users.set(user.id, user);
    // The story carriers share one group, so that a group-only record of one is seen by the others.
    context.company.groups.set(user.id, index <= 4 ? 1 : 1 + (index % GROUP_COUNT));
    if (index > 0) context.pool.sellers.push(user.id);
  }
}

export function makeUser(
  context: Pick<SeedContext, "company" | "now">,
  name: string,
  state: { admin: boolean; active: boolean },
): User {
  const id = nextId(context.company.users, firstId.user);
  return {
    id,
    name,
    default_currency: "EUR",
    locale: "et_EE",
    lang: 1,
    email: `${name.split(" ").map(asciiWord).join(".")}.${id % 1_000}@${context.company.domain}.example`,
    phone: null,
    activated: true,
    last_login: v1Time(context.now),
    created: v1Time(context.now),
    modified: null,
    has_created_company: state.admin,
    access: [
      { app: "sales", admin: state.admin, permission_set_id: permissionSet("sales", state.admin) },
      { app: "global", admin: state.admin, permission_set_id: permissionSet("global", state.admin) },
    ],
    active_flag: state.active,
    timezone_name: "Europe/Tallinn",
    timezone_offset: "+02:00",
    role_id: 1,
    icon_url: null,
    is_you: false,
    is_deleted: false,
    is_admin: state.admin ? 1 : 0,
  };
}

function permissionSet(app: string, admin: boolean): string {
  const hex = createHash("sha1").update(`${app}/${admin}`).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    "-",
  );
}
