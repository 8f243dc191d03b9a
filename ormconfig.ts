import "reflect-metadata";
import { createDataSource } from "./src/database/data-source";
import { entities } from "./src/entities";
import { Secret } from "./src/platform/keyring";

/** For TypeORM's command line: `DATABASE_URL=... npx typeorm migration:show -d dist/ormconfig.js`. */
export default createDataSource({ url: new Secret(process.env.DATABASE_URL ?? ""), entities });
