const NAMED = "{ id name }";
const DEAL = `id title status value { amount currency } stage ${NAMED} pipeline ${NAMED} owner ${NAMED} organization ${NAMED}`;

/** Everything that a page before a meeting shows. */
export const BRIEFING = `query Briefing($id: ID!) { briefing(meetingId: $id) {
  meeting { id title startsAt endsAt attendees { email name side match { status reason } } match { status reason } }
  deal { ${DEAL} crmUrl expectedCloseDate stageChangedAt participantsKnown participants ${NAMED}
    nextActivity { id subject type dueAt } recentActivities { id subject type doneAt owner ${NAMED} }
    recentNotes { id text createdAt author ${NAMED} }
    quiet { verdict quietSince quietDays nextChangeAt asOf reasons { code message } } }
  otherDeals { ${DEAL} crmUrl }
  persons { id name crmUrl lastIncomingMailAt emails { address primary } organization ${NAMED} }
  organizations ${NAMED}
  timeline(first: 20) { kind at person ${NAMED} activity { id subject type } }
  asOf gaps { resource code count since message } } }`;

/** What the page of quiet deals shows. */
export const QUIET_LIST = `query Quiet { deals(first: 50, filter: { verdict: [QUIET, GHOSTED] }, orderBy: QUIET_DAYS_DESC) {
  nodes { ${DEAL} crmUrl quiet { verdict quietDays reasons { code message } } } pageInfo { hasNextPage endCursor } } }`;

/** An ordinary list. */
export const DEAL_LIST = `query Deals { deals(first: 20) {
  nodes { ${DEAL} crmUrl participants ${NAMED} } pageInfo { hasNextPage endCursor } } }`;

export const MEETING_LIST = `query Meetings { meetings(first: 20) {
  nodes { id title startsAt match { status reason } } pageInfo { hasNextPage endCursor } } }`;
