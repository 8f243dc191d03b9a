import { recordMeeting } from "../support/stories";
import { useService } from "../support/world";

const { simulator, service } = useService({ deals: 60, connected: ["acme"] });

const BRIEFING = `query ($id: ID!) { briefing(meetingId: $id) {
  meeting { title match { status rule reason deal { title } } }
  deal { id crmId title status value { amount currency } stage { name daysToRotten pipeline { name } } pipeline { name }
    owner { name email } organization { name } person { name } participants { name } participantsKnown
    recentActivities { subject done doneAt owner { name } } nextActivity { subject dueAt dueDay }
    recentNotes { html text author { name } } customFields crmUrl createdAt updatedAt }
  otherDeals { title } persons { name emails { address primary } organization { name } }
  organizations { name } asOf gaps { resource code } } }`;

test("from consent to briefing: the deal's stage, pipeline, value, owner, people and last activity", async () => {
  const story = simulator.company.stories.singleDeal;
  const meeting = await recordMeeting(service, [story.email]);
  expect(meeting.match).toMatchObject({ status: "MATCHED", rule: "ONLY_CANDIDATE" });
  const answer = await service.ask<{ briefing: Record<string, unknown> }>(BRIEFING, { id: meeting.id });
  expect(answer.errors).toBeUndefined();
  const { company } = simulator;
  const deal = company.deals.get(story.dealId);
  expect(answer.data.briefing).toMatchObject({
    deal: {
      crmId: String(story.dealId),
      title: deal?.title,
      value: { amount: String(deal?.value), currency: deal?.currency },
      stage: { name: company.stages.get(story.stageId)?.name },
      pipeline: { name: company.pipelines.get(story.pipelineId)?.name },
      owner: { name: company.users.get(story.ownerId)?.name },
      organization: { name: company.organizations.get(story.orgId)?.name },
      recentActivities: [
        expect.objectContaining({ subject: company.activities.get(story.doneActivityId)?.subject, done: true }),
      ],
      nextActivity: { subject: company.activities.get(story.plannedActivityId)?.subject, dueDay: null },
      participantsKnown: true,
    },
    persons: [{ name: company.persons.get(story.personId)?.name }],
    gaps: [],
  });
  expect(answer.data.briefing.asOf).not.toBeNull();
});
