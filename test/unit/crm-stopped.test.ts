import { CrmStops } from "../../src/connections/crm-stops";
import { CrmError, CrmStoppedError, stopBehind } from "../../src/crm/errors";
import { OAuthError } from "../../src/crm/oauth";
import { createDataSource } from "../../src/database/data-source";
import { Database } from "../../src/database/database";
import { Secret } from "../../src/platform/keyring";
import { isSubFetchFailure } from "../../src/sync/failures";
import { certainFailureOf } from "../../src/writeback/outcomes";

const stop = new CrmStoppedError("We look into it.");
const renewal = new OAuthError("OUTAGE", "not renewed", { cause: stop });

test("a stop is recognized behind a renewal that was not sent, and in nothing else", () => {
  expect(stopBehind(stop)).toBe(stop);
  expect(stopBehind(renewal)).toBe(stop);
  expect(stopBehind(new CrmError("UNAVAILABLE", "an outage", { neverSent: true }))).toBeNull();
  expect(stopBehind(new Error("something else", { cause: stop }))).toBeNull();
});

test("what a stop holds up is no gap: the run waits", () => {
  expect(isSubFetchFailure(new CrmError("UNAVAILABLE", "an outage"))).toBe(true);
  expect(isSubFetchFailure(stop)).toBe(false);
});

test.each([stop, renewal])("a write that a stop overtakes has certainly not taken place, and says why", (error) => {
  expect(certainFailureOf(error)).toEqual({
    code: "CRM_UNAVAILABLE",
    message: expect.stringContaining("We look into it."),
  });
});

test("a process that cannot read the switch makes no call", async () => {
  const url = new Secret("postgresql://nobody@127.0.0.1:9/nothing");
  const stops = new CrmStops(new Database(createDataSource({ url, entities: [] })));
  await expect(stops.requireNone()).rejects.toMatchObject({ code: "UNAVAILABLE", detail: { neverSent: true } });
});
