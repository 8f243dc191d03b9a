import { createHmac, randomBytes } from "node:crypto";
import type { RejectedRecord } from "../crm/parsing/page";
import type { CrmActivity, CrmNote, CrmPerson, CrmUser } from "../crm/parsing/records";
import type { CopyScope, TenantScope } from "../database/database";
import { KeptOutKeyRow } from "../entities/tenant";
import { ERASED, mailboxIn } from "../platform/email-address";
import { KEY_BYTES, type Keyring } from "../platform/keyring";
import { lockConnection } from "./connection";
import { eraseTexts, holdCopyToJudge, withoutText } from "./copies";

// Addresses that are kept out of a tenant's rows, known by keyed hashes alone (decision 0085).

/** Any fixed number: the name of "what is kept out of a tenant" among this database's advisory locks. */
const KEEPING_LOCKS = 20_260_017;

/** Whose address is to be kept out, with the synced persons that have it. */
export interface Unwanted {
  mailboxes: ReadonlySet<string>;
  records: readonly { copyId: number; crmId: number }[];
}

const placeOf = (tenantId: number) => [String(tenantId), "kept_out_key"];

/** The tenant's key is sealed on the way into the database and opened on the way out, here and nowhere else. */
export class KeepOut {
  constructor(private readonly keyring: Keyring) {}

  /** What is kept out of the tenant's rows; null: nothing ever was. */
  async read({ tenantId, rows }: TenantScope): Promise<KeptOut | null> {
    const [kept] = await rows<{ sealed: Buffer; hashes: string[] }>(
      `SELECT k.sealed_key AS sealed, ARRAY (SELECT a.hash FROM kept_out_address a WHERE a.tenant_id = $1) AS hashes
       FROM kept_out_key k WHERE k.tenant_id = $1`,
      [tenantId],
      { sealed: "json", hashes: "json" },
    );
    return kept ? new KeptOut(this.keyring.open(kept.sealed, placeOf(tenantId)), new Set(kept.hashes)) : null;
  }

  /** The same for what no copy's lock holds: until the transaction ends nothing more is kept out. */
  async hold(scope: TenantScope): Promise<KeptOut | null> {
    await scope.rows(`SELECT pg_advisory_xact_lock_shared(${KEEPING_LOCKS}, hashint8($1)) AS held`, [scope.tenantId]);
    return this.read(scope);
  }

  /**
   * Keeps a person's addresses out, from the commit of the caller's transaction on: it waits for whoever stores meetings
   * or a page at this moment, and what comes later sees it.
   */
  async add(scope: TenantScope, { mailboxes, records }: Unwanted, now: Date): Promise<void> {
    const { tenantId, rows } = scope;
    await rows(`SELECT pg_advisory_xact_lock(${KEEPING_LOCKS}, hashint8($1)) AS held`, [tenantId]);
    const { copyId } = await lockConnection(scope);
    if (copyId !== null) await holdCopyToJudge(scope, copyId);
    const sealed = this.keyring.seal(randomBytes(KEY_BYTES).toString("base64"), placeOf(tenantId));
    await rows("INSERT INTO kept_out_key (tenant_id, sealed_key) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
      tenantId,
      sealed,
    ]);
    const kept = await this.read(scope);
    const hashes = [...mailboxes].flatMap((mailbox) => kept?.hashOf(mailbox) ?? []);
    await rows(ADD, [tenantId, hashes, now]);
    if (copyId === null) return;
    // The purge of a copy that is retired may be beyond these rows.
    const ofLive = records.filter((record) => record.copyId === copyId);
    const shown = ofLive.flatMap(({ crmId }) => hashes.map((hash) => ({ crmId, hash })));
    await notePersons({ ...scope, copyId }, shown, []);
  }

  /** With the others that were kept out with it. @returns how many addresses may come again */
  async letIn(scope: TenantScope, address: string): Promise<number> {
    const { tenantId, rows } = scope;
    const hash = (await this.read(scope))?.hashOf(address) ?? null;
    const gone = await rows<{ hash: string }>(LET_IN, [tenantId, hash], { hash: "text" });
    const hashes = gone.map((row) => row.hash);
    await rows("DELETE FROM kept_out_person WHERE tenant_id = $1 AND hash = ANY ($2)", [tenantId, hashes]);
    return gone.length;
  }

  /** Seals the tenant's key under the first key of the service. @returns false where there was nothing to do */
  async reseal({ tenantId, typed }: TenantScope): Promise<boolean> {
    const lock = { mode: "pessimistic_write" } as const;
    const row = await typed((orm) => orm.findOne(KeptOutKeyRow, { where: { tenantId }, lock }));
    if (!row || this.keyring.isUnderFirstKey(row.sealedKey)) return false;
    const sealedKey = this.keyring.seal(this.keyring.open(row.sealedKey, placeOf(tenantId)), placeOf(tenantId));
    await typed((orm) => orm.update(KeptOutKeyRow, { tenantId }, { sealedKey }));
    return true;
  }
}

/** A person whose addresses come in several commands is one: the first hash names it. */
const ADD = `
  INSERT INTO kept_out_address (tenant_id, hash, first_hash, since)
  SELECT $1, h.hash, coalesce((SELECT min(a.first_hash) FROM kept_out_address a WHERE a.tenant_id = $1 AND a.hash = ANY ($2)),
    ($2::text[])[1]), $3 FROM unnest($2::text[]) AS h (hash)
  ON CONFLICT DO NOTHING`;
const LET_IN = `
  DELETE FROM kept_out_address WHERE tenant_id = $1 AND first_hash IN (
    SELECT a.first_hash FROM kept_out_address a WHERE a.tenant_id = $1 AND a.hash = $2) RETURNING hash`;

interface Shown {
  crmId: number;
  hash: string;
}

/**
 * Notes persons of the CRM who have an address that is kept out, and forgets those of a page who have none any more.
 * @returns those who are new, and those whom the copy holds
 */
async function notePersons(
  { tenantId, copyId, rows }: CopyScope,
  shown: readonly Shown[],
  page: readonly number[],
): Promise<{ fresh: number[]; held: number[] }> {
  const [noted] = await rows<{ fresh: number[]; held: number[] }>(
    NOTE_PERSONS,
    [tenantId, copyId, shown.map(({ crmId }) => crmId), shown.map(({ hash }) => hash), page],
    { fresh: "json", held: "json" },
  );
  return noted ?? { fresh: [], held: [] };
}

const NOTE_PERSONS = `
  WITH forgotten AS (
    DELETE FROM kept_out_person WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($5::bigint[]) AND crm_id <> ALL ($3::bigint[])
  ), noted AS (
    INSERT INTO kept_out_person (tenant_id, copy_id, crm_id, hash)
    SELECT $1, $2, s.crm_id, s.hash FROM unnest($3::bigint[], $4::text[]) AS s (crm_id, hash)
    ON CONFLICT DO NOTHING RETURNING crm_id
  )
  SELECT ARRAY (SELECT DISTINCT crm_id FROM noted) AS fresh, ARRAY (
    SELECT p.crm_id FROM person p WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.crm_id = ANY ($3::bigint[])) AS held`;

/** Of the persons, those who are kept out. */
async function outOf({ tenantId, copyId, rows }: CopyScope, ids: readonly number[]): Promise<ReadonlySet<number>> {
  if (ids.length === 0) return new Set();
  const found = await rows<{ id: number }>(
    "SELECT DISTINCT crm_id AS id FROM kept_out_person WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($3)",
    [tenantId, copyId, ids],
    { id: "number" },
  );
  return new Set(found.map(({ id }) => id));
}

const PERSON_IN = /"person_id":"?(\d{1,15})\b/g;
const ADDRESS_LIKE = /[^\s"'<>()[\],;:\\]+@[^\s"'<>()[\],;:\\]+/g;

/** The addresses that a tenant keeps out, opened; a page or a meeting passes through it before it is stored. */
export class KeptOut {
  readonly #key: string;
  readonly #hashes: ReadonlySet<string>;

  constructor(key: string, hashes: ReadonlySet<string>) {
    this.#key = key;
    this.#hashes = hashes;
  }

  /** Of the mailbox: who changes what `mailboxOf` makes of an address changes by what it is found. null: it is no address. */
  hashOf(text: string): string | null {
    const mailbox = mailboxIn(text);
    return mailbox && createHmac("sha256", this.#key).update(mailbox).digest("base64url");
  }

  #hashesIn(texts: readonly string[]): string[] {
    return texts.flatMap((text) => this.hashOf(text) ?? []).filter((hash) => this.#hashes.has(hash));
  }

  has = (text: string): boolean => this.#hashesIn([text]).length > 0;

  /** Persons who have such an address are not stored. One whom the copy holds is shown as deleted, so that it leaves. */
  async persons(copy: CopyScope, page: readonly CrmPerson[]): Promise<CrmPerson[]> {
    const shown = page.flatMap(({ id, emails }) =>
      this.#hashesIn(emails.map(({ value }) => value)).map((hash) => ({ crmId: id, hash })),
    );
    const ids = page.map(({ id }) => id);
    const { fresh, held } = await notePersons(copy, shown, ids);
    for (const id of fresh) await eraseTexts(copy, copy.copyId, id);
    const out = new Set(shown.map(({ crmId }) => crmId));
    // One that was noted before is its erasure's, which finds all the rest by it, also when it is begun again after a kill.
    const leaving = new Set(held.filter((id) => fresh.includes(id)));
    return page.flatMap((person) => {
      if (!out.has(person.id) || person.deleted) return [person];
      return leaving.has(person.id) ? [{ ...person, deleted: true }] : [];
    });
  }

  /** A user's id stays, for what the user did is the deal's, and by it is known who authorized. */
  user = <User extends Pick<CrmUser, "name" | "email">>(user: User): User =>
    this.has(user.email) ? { ...user, name: ERASED, email: ERASED } : user;

  users = async (_: CopyScope, page: readonly CrmUser[]): Promise<CrmUser[]> => page.map(this.user);

  async activities(copy: CopyScope, page: readonly CrmActivity[]): Promise<CrmActivity[]> {
    const named = ({ personId, participantIds }: CrmActivity) => [...participantIds, ...(personId ? [personId] : [])];
    const out = await outOf(copy, page.flatMap(named));
    return page.map((one) => (named(one).some((id) => out.has(id)) ? { ...one, subject: ERASED } : one));
  }

  async notes(copy: CopyScope, page: readonly CrmNote[]): Promise<CrmNote[]> {
    const ids = page.flatMap(({ personId }) => personId ?? []);
    const out = await outOf(copy, ids);
    return page.map((note) =>
      note.personId && out.has(note.personId) ? { ...note, content: withoutText(note.content) } : note,
    );
  }

  /** Of a record that could not be read nobody knows where what stands: what is of people, or names who is out, keeps its ids at most. */
  async rejected(copy: CopyScope, all: readonly RejectedRecord[], areOfPeople: boolean): Promise<RejectedRecord[]> {
    const texts = all.map(({ payload }) => JSON.stringify(payload ?? null));
    const idsIn = (text: string) => [...text.matchAll(PERSON_IN)].map(([, id]) => Number(id));
    const out = await outOf(copy, texts.flatMap(idsIn));
    const isOut = (text: string) =>
      (text.match(ADDRESS_LIKE) ?? []).some(this.has) || idsIn(text).some((id) => out.has(id));
    const payloads = texts.map((text, at) => (isOut(text) ? JSON.parse(text, withoutWords) : all[at]?.payload));
    return all.map((record, at) => ({ ...record, payload: areOfPeople ? null : payloads[at] }));
  }
}

const withoutWords = (_: string, value: unknown) => (typeof value === "string" ? undefined : value);
