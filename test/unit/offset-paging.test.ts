import { CrmApi, PAGE_SIZE } from "../../src/crm/api";
import { type CrmAnswer, CrmHttp, type CrmRequest } from "../../src/crm/http";
import { idsOf, readOffsetPage } from "../../src/crm/parsing/page";
import { participantRecord } from "../../src/crm/parsing/records";
import { Secret } from "../../src/platform/keyring";

// Seen red: 500 of 1,600 notes were there, and the run had succeeded.

const participant = { person_id: { value: 1 } };
const page = (additional_data: unknown, data: object[] = [participant]): CrmAnswer => ({
  status: 200,
  contentType: "application/json",
  body: Buffer.from(JSON.stringify({ success: true, data, additional_data })),
  ...{ date: null, correlationId: "one", headerNames: [] },
  limit: { remaining: null, reset: null },
  day: { limit: null, remaining: null },
});

test.each([[null], [{ pagination: { start: 0, limit: 1 } }]])(
  "a full page that does not say whether more follows cannot be read, and one with room is the last: %j beside it",
  async (beside) => {
    await expect(readOffsetPage(page(beside), 1, participantRecord)).rejects.toThrow("does not say whether");
    expect(await readOffsetPage(page(beside), 2, participantRecord)).toMatchObject({ next: null });
    // Seen red: one that cannot be read made room.
    await expect(readOffsetPage(page(beside, [{}]), 1, participantRecord)).rejects.toThrow("does not say whether");
  },
);

test("a page that says only where more follows goes on there", async () => {
  const beside = { pagination: { start: 0, limit: 1, next_start: 500 } };
  expect(await readOffsetPage(page(beside), 1, participantRecord)).toMatchObject({ next: "500" });
});

// Seen red: a list whose number of records divides by its page's could never be read to its end.
test("a full page that says it is the last one is the last", async () => {
  const beside = { pagination: { start: 0, limit: 1, more_items_in_collection: false } };
  expect(await readOffsetPage(page(beside), 1, participantRecord)).toMatchObject({ next: null });
});

/** A CRM that has notes, of which one cannot be read. */
class Notes extends CrmHttp {
  ids = Array.from({ length: 1_300 }, (_one, index) => index + 1);
  asked = 0;
  /** How much farther than the next page it says that the next one begins. */
  leap = 0;

  override async send({ url }: CrmRequest): Promise<CrmAnswer> {
    this.asked += 1;
    if (this.asked > 8) throw new Error("The walk does not end.");
    const { start, limit } = Object.fromEntries(new URL(url).searchParams);
    const end = Number(start) + Number(limit);
    const shown = this.ids
      .slice(Number(start), end)
      .map((id) => ({ id, content: "", add_time: id === PAGE_SIZE ? "" : TIME, person_id: id }));
    const more_items_in_collection = end < this.ids.length;
    const next_start = more_items_in_collection ? end + this.leap : null;
    return page({ pagination: { more_items_in_collection, next_start } }, shown);
  }
}
const TIME = "2026-11-20 12:00:00";

const token = async () => new Secret("token");
const apiOf = (http: CrmHttp) =>
  new CrmApi({ http, baseUrl: "http://crm.example", tokens: { current: token, renewed: token } });

// Planted and seen red: asked for the same page for ever, where all that were read have vanished; the last of each page counted twice.
// Where only few rows are left it steps back by half a page as well: by half of those few it asked, and paid, five times as often.
test.each([0, 1, 499, 500, 800])(
  "where %i notes vanish behind the first page of a walk, all others are shown, and it ends",
  async (count) => {
    const http = new Notes();
    const api = apiOf(http);
    const shown: number[] = [];
    let cursor: string | null = null;
    do {
      const read: Awaited<ReturnType<typeof api.notes>> = await api.notes({ cursor });
      if (cursor === null) http.ids.splice(0, count);
      shown.push(...idsOf(read));
      cursor = read.next;
    } while (cursor !== null);
    await http.close();
    const seen = new Set(shown);
    expect(http.ids.filter((id) => !seen.has(id))).toEqual([]);
    if (count === 0) expect(shown).toHaveLength(http.ids.length);
  },
);

const LEAPING: [what: string, ask: (api: CrmApi) => Promise<unknown>][] = [
  ["the notes of a company", (api) => api.notes({ cursor: null })],
  ["the notes on a deal", (api) => api.notesOf({ entity: "DEAL", id: 7 }, { cursor: null })],
  ["the participants of a deal", (api) => api.participantIds(7, null)],
];

// Seen red: stepped back from there to what it had skipped, by half a page a request, a walk spent the company's day, run
// after run; a look-up proved by it that a note is not there; and of a deal only those on the first page took part.
test.each(LEAPING)("where the next page is said to begin beyond it, %s cannot be read", async (_what, ask) => {
  const http = new Notes();
  http.leap = 1_000_000;
  await expect(ask(apiOf(http))).rejects.toMatchObject({ code: "UNREADABLE" });
  expect(http.asked).toBe(1);
  await http.close();
});
