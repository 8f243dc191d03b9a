import { getNamedType, isInputObjectType } from "graphql";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
import { dumpState } from "../support/dump";
import { dataOf, type Refusal } from "../support/stories";
import { useService } from "../support/world";

const { database, service } = useService({ deals: 10, roles: ["api"] });

const MEETING = {
  externalId: "m-1",
  title: "A call",
  startsAt: "2026-11-20T10:00:00Z",
  ownerEmail: "anna@acme.example",
  attendees: [{ email: "bo@buyer.example" }],
};
const NOTE = { meetingId: "m", content: "Went well.", idempotencyKey: "key-1" };
const SETTINGS = { thresholds: [], businessDays: false, twoWayActivityTypes: [] };
const SILENCE = { code: "GHOSTED", days: 7 };
const VALUES = { meetingId: "m", values: [{ entity: "DEAL", value: "x" }], idempotencyKey: "key-2" };

/** By mutation: its type of input, then inputs each with the one fault that is named. */
const FAULTS: Record<string, [type: string, faults: [input: object, field: string, words: string][]]> = {
  recordMeeting: [
    "RecordMeetingInput",
    [
      [{ ...MEETING, title: "t".repeat(501) }, "title", "must have at most 500 characters"],
      [{ ...MEETING, externalId: "m-\ud83d" }, "externalId", "must not contain half a surrogate pair"],
      [{ ...MEETING, startsAt: "2200-01-01T00:00:00Z" }, "startsAt", "must be before 2200"],
      [{ ...MEETING, endsAt: "2026-11-20T09:59:59Z" }, "endsAt", "must not be before startsAt"],
      [{ ...MEETING, ownerEmail: "anna" }, "ownerEmail", "is not an e-mail address"],
      [{ ...MEETING, attendees: [...MEETING.attendees, { email: " " }] }, "attendees.1.email", "must not be empty"],
      [
        { ...MEETING, attendees: [{ email: "bo@buyer.example", name: "n".repeat(321) }] },
        "attendees.0.name",
        "must have at most 320 characters",
      ],
    ],
  ],
  // Each of its inputs is refused for itself: the stories of meetings have its cases.
  recordMeetings: ["[RecordMeetingInput!]", []],
  // Whatever came back from the CRM is a consent that holds or none: the matrix of callbacks has its cases.
  connect: ["ConnectInput", []],
  setFieldMapping: [
    "FieldMappingInput",
    [[{ entity: "DEAL", fieldKey: "\0" }, "fieldKey", "must not contain a NUL character"]],
  ],
  setQuietSettings: [
    "QuietSettingsInput",
    [
      ...[0, -1, 3_651, 1e9].map((days): [object, string, string] => [
        { ...SETTINGS, thresholds: [SILENCE, { code: "STALLED_IN_STAGE", days }] },
        "thresholds.1.days",
        "must be from 1 to 3650",
      ]),
      [
        { ...SETTINGS, thresholds: [{ code: "NO_NEXT_STEP", days: -1 }] },
        "thresholds.0.days",
        "must be from 0 to 3650",
      ],
      ...[0, 101].map((days): [object, string, string] => [
        { ...SETTINGS, thresholds: [{ code: "CLOSE_DATE_PUSHED", days }] },
        "thresholds.0.days",
        "must be from 1 to 100",
      ]),
      ...["CRM_ROTTEN", "OWNER_INACTIVE", "DATA_STALE", "DATA_INCOMPLETE"].map((code): [object, string, string] => [
        { ...SETTINGS, thresholds: [{ code, days: 7 }] },
        "thresholds.0.code",
        "is a reason without days",
      ]),
      [{ ...SETTINGS, thresholds: [SILENCE, { ...SILENCE, days: 8 }] }, "thresholds", "must have GHOSTED once"],
      [
        { ...SETTINGS, thresholds: Array.from({ length: 501 }, (_, index) => ({ ...SILENCE, stageId: `${index}` })) },
        "thresholds",
        "must have at most 500 entries",
      ],
      [
        { ...SETTINGS, thresholds: [{ ...SILENCE, pipelineId: "x", stageId: "y" }] },
        "thresholds.0.stageId",
        "must not stand beside",
      ],
      [{ ...SETTINGS, twoWayActivityTypes: ["demo", " "] }, "twoWayActivityTypes", "must be names of 1 to 100"],
      [{ ...SETTINGS, twoWayActivityTypes: ["task"] }, "twoWayActivityTypes", "must not have task"],
      [
        { ...SETTINGS, twoWayActivityTypes: Array.from({ length: 51 }, (_, index) => `kind-${index}`) },
        "twoWayActivityTypes",
        "must have at most 50 entries",
      ],
      ...["", "Mars/Olympus", "+02:00", "Europe/Berlin; DROP"].map((timeZone): [object, string, string] => [
        { ...SETTINGS, timeZone },
        "timeZone",
        "is not the IANA name",
      ]),
    ],
  ],
  writeNote: [
    "WriteNoteInput",
    [
      [{ ...NOTE, content: " \n" }, "content", "must not be empty"],
      [{ ...NOTE, idempotencyKey: "\ud800" }, "idempotencyKey", "must not contain"],
    ],
  ],
  writeFields: [
    "WriteFieldsInput",
    [
      [{ ...VALUES, values: [] }, "values", "must have 1 to 20 entries"],
      [{ ...VALUES, values: [{ entity: "DEAL", value: [[[[["deep"]]]]] }] }, "values.0.value", "is nested too deeply"],
    ],
  ],
};

const CASES = Object.entries(FAULTS).flatMap(([mutation, [type, faults]]) =>
  faults.map(([input, field, words]) => ({ mutation, type, input, field, words })),
);

test.each(CASES)(
  "$mutation refuses an input whose $field $words, in words, and stores nothing",
  async ({ mutation, type, input, field, words }) => {
    const before = await dumpState(database);
    const query = `mutation ($input: ${type}!) { answer: ${mutation}(input: $input) { ... on Refusal { code message field } } }`;
    const { answer } = dataOf(await service.ask<{ answer: Refusal }>(query, { input }));
    expect(answer).toEqual({ code: "INVALID_INPUT", message: expect.stringContaining(`${field} ${words}`), field });
    expect(await dumpState(database)).toEqual(before);
  },
);

test("every mutation that takes an input class is among them", () => {
  const mutations = Object.values(buildGraphQLSchema().getMutationType()?.getFields() ?? {});
  const taking = mutations.filter(({ args }) => args.some(({ type }) => isInputObjectType(getNamedType(type))));
  expect(taking.map(({ name }) => name).sort()).toEqual(Object.keys(FAULTS).sort());
});

test("a query has no refusal to answer with: a filter that says too much is the client's error", async () => {
  const { errors } = await service.ask(
    "query ($status: [DealStatus!]) { deals(filter: { status: $status }) { nodes { id } } }",
    {
      status: Array(11).fill("OPEN"),
    },
  );
  expect(errors).toEqual([
    expect.objectContaining({
      message: "filter.status must have at most 10 entries.",
      extensions: expect.objectContaining({ code: "BAD_USER_INPUT" }),
    }),
  ]);
});
