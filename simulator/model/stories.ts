/** Known situations at the start of the data. The people named take part in no deals but those named beside them. */
export interface Stories {
  /** One person, exactly one open deal, with everything a briefing could show. */
  singleDeal: {
    personId: number;
    email: string;
    dealId: number;
    orgId: number;
    ownerId: number;
    stageId: number;
    pipelineId: number;
    /** The buyer and one colleague. */
    participantIds: number[];
    colleagueEmail: string;
    doneActivityId: number;
    plannedActivityId: number;
    noteId: number;
  };
  /** One person on two open deals of different owners. */
  severalDeals: { personId: number; email: string; dealIds: [number, number]; ownerIds: [number, number] };
  /** Two persons with one address, on no deal. */
  sharedAddress: { personIds: [number, number]; email: string };
  /** A person at a free-mail provider, without organization, with one open deal. */
  freeMail: { personId: number; email: string; dealId: number };
  /** Our side wrote long after the other side's last mail; no activity since. */
  ghosted: { dealId: number; personId: number; email: string };
  /** `email` as a calendar would write it; `storedEmail` as the CRM holds it: not primary, odd case, blanks around. */
  secondaryAddress: { personId: number; email: string; storedEmail: string; primaryEmail: string; dealId: number };
  /** A deal with a contact person, whose participants_count is 0 all the same. */
  noParticipants: { dealId: number; personId: number; email: string };
}
