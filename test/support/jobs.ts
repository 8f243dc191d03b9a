import { z } from "zod";
import type { JobKind } from "../../src/database/jobs";

const PAYLOAD = z.object({ tenantId: z.int(), thingId: z.string() });

/** A kind of jobs that only tests have. */
export const THING: JobKind<z.infer<typeof PAYLOAD>> = {
  name: "look_at_thing",
  payload: PAYLOAD,
  subjectOf: ({ thingId }) => thingId,
};
