import { createHash } from "node:crypto";
import { readConfig } from "../../src/platform/config";
import { startProgram } from "../support/processes";
import type { CallersReport } from "../support/programs/token-callers";
import { environmentFor } from "../support/service";
import { connect } from "../support/stories";
import { makeStale, startTokens } from "../support/tokens";
import { useService } from "../support/world";

// Seen red with: no advisory lock; no second look under the lock; the token handed out before the commit.

const PROCESSES = 4;
const CALLERS = 50;
const DELAYS_MS = process.env.DEEP ? [300, 12_000] : [300];

const { simulator, database, service } = useService({ deals: 10, roles: ["api"] });

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

test.each(DELAYS_MS)(
  "200 callers in four processes need a token at once while the CRM takes %i ms: one request, one token, nobody fails",
  async (ms) => {
    const tenant = `race-${ms}`;
    await connect(service, simulator, { tenant });
    const copyId = await makeStale(database, tenant);
    const environment = { ...environmentFor(simulator), DATABASE_URL: database.url.reveal() };
    const tenantId = await database.tenantId(tenant);
    const programs = Array.from({ length: PROCESSES }, () =>
      startProgram("test/support/programs/token-callers.js", {
        ...environment,
        TENANT: String(tenantId),
        COPY_ID: String(copyId),
        CALLERS: String(CALLERS),
      }),
    );
    await Promise.all(programs.map((program) => program.says(/ready/)));
    simulator.log.clear();
    const end = simulator.control.fail({ match: "/oauth/token", with: { kind: "delay", ms } });
    for (const { child } of programs) child.kill("SIGUSR2");
    const reports = await Promise.all(
      programs.map(async (program): Promise<CallersReport> => JSON.parse((await program.says(/^\{.*\}$/m))[0])),
    );
    expect(await Promise.all(programs.map(({ ended }) => ended))).toEqual([0, 0, 0, 0]);
    end();

    expect(simulator.log.of("POST", "/oauth/token").map(({ grantType }) => grantType)).toEqual(["refresh_token"]);
    const healthy = await startTokens(readConfig(environment));
    const stored = await healthy.credentials.read(healthy.database.tenant(tenantId), copyId);
    await healthy.close();
    expect(stored?.version).toBe(2);
    const token = sha256(stored?.accessToken.reveal() ?? "");
    expect(reports).toEqual(programs.map(() => ({ tokens: [token], failures: [] })));
  },
  60_000,
);
