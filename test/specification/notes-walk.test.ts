import { copiedIds, visibleIds } from "../support/copy";
import { SyncWorld } from "../support/sync-world";

// Seen red with: half a page back of what came small, which began the list anew; full pages asked for at each step back; and
// half of what was asked for, though less came: the page before was read again, and the walk had no end.

let world: SyncWorld;
beforeAll(async () => {
  world = await SyncWorld.start({ deals: 20 });
  world.fill("NOTES", 2_300);
}, 120_000);
afterAll(() => world.stop());

const notes = () => visibleIds(world.simulator, world.userId).note ?? [];
const asked = () => world.asked("NOTES").map(({ query }) => `${query.start}+${query.limit}`);

test.each([[1], [120], [330]])(
  "where %i notes vanish before the place of a walk and full pages stop coming, none is missing and each request tries one",
  async (count) => {
    const { control, log } = world.simulator;
    log.clear();
    const vanish = () => {
      for (const id of notes().slice(10, 10 + count)) control.remove("note", id);
    };
    const match = "/api/v1/notes";
    const ends = [
      control.fail({
        match,
        where: ({ start }) => start === "499",
        times: 1,
        with: { kind: "meanwhile", act: vanish },
      }),
      control.fail({
        match,
        where: ({ start = "", limit }) => Number(limit) > 100 && !["0", "499"].includes(start),
        with: { status: 504 },
      }),
    ];
    const as = { tenant: `vanish ${count}` };
    expect(await world.connect(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
    for (const end of ends) end();
    expect((await copiedIds(world.database, as.tenant)).note).toEqual(expect.arrayContaining(notes()));
    expect(asked().slice(0, 4)).toEqual(["0+500", "499+500", "249+500", "249+100"]);
    expect(
      asked()
        .slice(4, 14)
        .every((page) => page.endsWith("+100")),
    ).toBe(true);
  },
  60_000,
);

test.each([[1], [120]])(
  "where the CRM caps pages and %i notes vanish before the place of a walk, none is missing",
  async (count) => {
    const own = await SyncWorld.start({ deals: 20, notesPerPage: 100 });
    try {
      own.fill("NOTES", 1_000);
      const { control } = own.simulator;
      const shown = () => visibleIds(own.simulator, own.userId).note ?? [];
      const vanish = () => {
        for (const id of shown().slice(10, 10 + count)) control.remove("note", id);
      };
      const where = ({ start }: { start?: string }) => start === "495";
      control.fail({ match: "/api/v1/notes", where, times: 1, with: { kind: "meanwhile", act: vanish } });
      const as = { tenant: "capped" };
      expect(await own.connect(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
      expect((await copiedIds(own.database, as.tenant)).note).toEqual(expect.arrayContaining(shown()));
      expect(own.asked("NOTES").some(({ query }) => where(query))).toBe(true);
      expect(own.asked("NOTES").length).toBeLessThan(20);
    } finally {
      await own.stop();
    }
  },
  60_000,
);
