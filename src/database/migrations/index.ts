import { Initial } from "./0001-initial";

/** In the order in which they run. */
export const migrations = [Initial];

/** As the table `migration` has them. */
export const migrationNames: readonly string[] = migrations.map((Migration) => new Migration().name);
