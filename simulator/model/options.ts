type RefreshTokenRule = "strict" | "grace" | "same";

export interface SimulatorOptions {
  /** How many deals the company has, archived and deleted ones included; everything else is in proportion. */
  deals?: number;
  /** How many in a hundred deals are open, 0 to 96; the others are won or lost, but for those in the bin. Default: 50. */
  openPercent?: number;
  /** The same seed and start instant give the same company, byte for byte. */
  seed?: number;
  /** 0 = any free port. */
  port?: number;
  host?: string;
  /** The simulator's clock: lives of codes and tokens, limits, the date header, update times. */
  now?: () => Date;
  clientId?: string;
  clientSecret?: string;
  redirectUrl?: string;
  company?: { id?: number; name?: string; domain?: string };
  /**
   * strict: a refresh token is dead once used. grace: it works until its successor is used. same: it never changes.
   * The CRM's own pages contradict each other on this, so a client has to live with all three.
   */
  refreshTokens?: RefreshTokenRule;
  /** Requests per token in any 2 seconds; null = unlimited. */
  burstLimit?: number | null;
  /** Tokens that the company may spend in a day, all its apps together; null = unlimited. */
  dailyTokens?: number | null;
  /** When its day ends by itself, in seconds after midnight UTC: the CRM does not say where its midnight is. null = on command only. */
  dayEndsAt?: number | null;
  /** Most fields in one answer of a field list, whatever its limit asks for: makes every client turn pages. */
  fieldsPerPage?: number;
  /** What becomes of a text that is too long for its custom field; the CRM's pages do not say. Default: cut. */
  longTexts?: "cut" | "refuse";
  /** Whether participants_count counts the deal's person; not known of the CRM. Default: counts. */
  dealsPerson?: "counts" | "does not count";
  /** Whether a list that is asked for the id of a deleted deal shows it; not known of the CRM. Default: hides. */
  deletedByIds?: "shows" | "hides";
  /** Most notes on a page, whatever its limit asks for. */
  notesPerPage?: number;
}

export interface Settings {
  deals: number;
  openPercent: number;
  seed: number;
  port: number;
  host: string;
  now: () => Date;
  clientId: string;
  clientSecret: string;
  redirectUrl: string;
  company: { id: number; name: string; domain: string };
  refreshTokens: RefreshTokenRule;
  burstLimit: number | null;
  dailyTokens: number | null;
  dayEndsAt: number | null;
  fieldsPerPage: number;
  longTexts: "cut" | "refuse";
  dealsPerson: "counts" | "does not count";
  deletedByIds: "shows" | "hides";
  notesPerPage: number;
}

export const MOST_DEALS = 100_000;
export const MOST_OPEN_PERCENT = 96;
/** The stories alone take seven deals. */
export const FEWEST_DEALS = 10;

export function settingsFrom(options: SimulatorOptions): Settings {
  const settings: Settings = {
    deals: options.deals ?? 100,
    openPercent: options.openPercent ?? 50,
    seed: options.seed ?? 1,
    port: options.port ?? 0,
    host: options.host ?? "127.0.0.1",
    now: options.now ?? (() => new Date()),
    clientId: options.clientId ?? "simulated-app",
    clientSecret: options.clientSecret ?? "simulated-secret",
    redirectUrl: options.redirectUrl ?? "http://127.0.0.1:4000/crm/callback",
    company: {
      id: options.company?.id ?? 7_654_321,
      name: options.company?.name ?? "Northwind Sales",
      domain: options.company?.domain ?? "northwind-sales",
    },
    refreshTokens: options.refreshTokens ?? "strict",
    burstLimit: options.burstLimit ?? null,
    dailyTokens: options.dailyTokens ?? null,
    dayEndsAt: options.dayEndsAt === undefined ? 0 : options.dayEndsAt,
    fieldsPerPage: options.fieldsPerPage ?? Number.POSITIVE_INFINITY,
    longTexts: options.longTexts ?? "cut",
    dealsPerson: options.dealsPerson ?? "counts",
    deletedByIds: options.deletedByIds ?? "hides",
    notesPerPage: options.notesPerPage ?? Number.POSITIVE_INFINITY,
  };
  if (!Number.isInteger(settings.deals) || settings.deals < FEWEST_DEALS || settings.deals > MOST_DEALS) {
    throw new RangeError(`deals must be a whole number from ${FEWEST_DEALS} to ${MOST_DEALS}`);
  }
  if (!Number.isInteger(settings.openPercent) || settings.openPercent < 0 || settings.openPercent > MOST_OPEN_PERCENT) {
    throw new RangeError(`openPercent must be a whole number from 0 to ${MOST_OPEN_PERCENT}`);
  }
  return settings;
}
