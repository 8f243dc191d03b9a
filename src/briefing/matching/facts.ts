/** What the rules of matching look at: a meeting, and what the synced copy holds that could belong to it. */

export interface AttendeeFact {
  position: number;
  /** In the one spelling in which addresses are compared; null where the text is no address. */
  address: string | null;
}

export interface PersonFact {
  crmId: number;
  organizationId: number | null;
  /** Every address of the person, not only the primary one. */
  addresses: readonly string[];
}

export interface DealFact {
  crmId: number;
  addTime: Date | null;
  wonTime: Date | null;
  lostTime: Date | null;
  /** The deal's person and its participants. */
  personIds: readonly number[];
}
