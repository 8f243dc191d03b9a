import type { MigrationInterface, QueryRunner } from "typeorm";
import { mailDomainOf, websiteDomainOf } from "../../platform/company-domain";
import { mailboxOf } from "../../platform/email-address";

/** What matching looks people and companies up by, what it says of a company, and what a user chose. */
const up = `
ALTER TABLE person_address ADD COLUMN mailbox text NOT NULL DEFAULT '', ADD COLUMN domain text;
ALTER TABLE person_address ALTER COLUMN mailbox DROP DEFAULT;
CREATE INDEX person_address_by_mailbox ON person_address (copy_id, mailbox);
CREATE INDEX person_address_by_domain ON person_address (copy_id, domain);

ALTER TABLE organization ADD COLUMN website_domain text;
CREATE INDEX organization_by_website_domain ON organization (copy_id, website_domain);

ALTER TABLE meeting_attendee
  ADD COLUMN organization_status text NOT NULL DEFAULT 'NONE',
  ADD COLUMN organization_id bigint,
  ADD COLUMN organization_rule text,
  ADD COLUMN organization_reason text,
  ADD CONSTRAINT meeting_attendee_organization_status CHECK (organization_status IN ('MATCHED', 'AMBIGUOUS', 'NONE'));
ALTER TABLE meeting_attendee ALTER COLUMN organization_status DROP DEFAULT;

ALTER TABLE meeting_match
  ADD COLUMN fingerprint text NOT NULL DEFAULT '',
  ADD COLUMN chosen_deal_id bigint,
  ADD COLUMN chosen_company_id bigint,
  ADD COLUMN chosen_by text,
  ADD COLUMN chosen_at timestamptz;
ALTER TABLE meeting_match ALTER COLUMN fingerprint DROP DEFAULT;

ALTER TABLE synced_copy ADD COLUMN rematched_at timestamptz;
`;

const down = `
ALTER TABLE synced_copy DROP COLUMN rematched_at;
ALTER TABLE meeting_match DROP COLUMN fingerprint, DROP COLUMN chosen_deal_id, DROP COLUMN chosen_company_id,
  DROP COLUMN chosen_by, DROP COLUMN chosen_at;
ALTER TABLE meeting_attendee DROP COLUMN organization_status, DROP COLUMN organization_id,
  DROP COLUMN organization_rule, DROP COLUMN organization_reason;
ALTER TABLE organization DROP COLUMN website_domain;
ALTER TABLE person_address DROP COLUMN mailbox, DROP COLUMN domain;
`;

/** Rows a statement while an existing copy is filled. */
const BATCH = 5_000;

export class Matching1763680000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
    await fillAddresses(runner);
    await fillWebsites(runner);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}

async function fillAddresses(runner: QueryRunner): Promise<void> {
  let last = { copyId: 0, address: "" };
  for (;;) {
    const found: (typeof last)[] = await runner.query(
      `SELECT DISTINCT copy_id AS "copyId", address FROM person_address WHERE (copy_id, address) > ($1, $2)
       ORDER BY copy_id, address LIMIT $3`,
      [last.copyId, last.address, BATCH],
    );
    const filled = found.map((row) => ({ ...row, mailbox: mailboxOf(row.address), domain: mailDomainOf(row.address) }));
    await runner.query(
      `UPDATE person_address a SET mailbox = r.mailbox, domain = r.domain
       FROM jsonb_to_recordset($1::jsonb) AS r ("copyId" bigint, address text, mailbox text, domain text)
       WHERE a.copy_id = r."copyId" AND a.address = r.address`,
      [JSON.stringify(filled)],
    );
    if (found.length < BATCH) return;
    last = found.at(-1) ?? last;
  }
}

async function fillWebsites(runner: QueryRunner): Promise<void> {
  let last = { copyId: 0, crmId: 0 };
  for (;;) {
    const found: (typeof last & { website: string })[] = await runner.query(
      `SELECT copy_id AS "copyId", crm_id AS "crmId", website FROM organization
       WHERE (copy_id, crm_id) > ($1, $2) AND website IS NOT NULL ORDER BY copy_id, crm_id LIMIT $3`,
      [last.copyId, last.crmId, BATCH],
    );
    const filled = found.map(({ website, ...row }) => ({ ...row, domain: websiteDomainOf(website) }));
    await runner.query(
      `UPDATE organization o SET website_domain = r.domain
       FROM jsonb_to_recordset($1::jsonb) AS r ("copyId" bigint, "crmId" bigint, domain text)
       WHERE o.copy_id = r."copyId" AND o.crm_id = r."crmId"`,
      [JSON.stringify(filled)],
    );
    if (found.length < BATCH) return;
    last = found.at(-1) ?? last;
  }
}
