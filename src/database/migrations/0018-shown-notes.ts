import type { MigrationInterface, QueryRunner } from "typeorm";

/** What a note is shown as, with the rules that made it, all null until somebody reads it; and the limit of its content. */
const up = `
ALTER TABLE note
  ADD COLUMN truncated boolean NOT NULL DEFAULT false,
  ADD COLUMN shown_html text,
  ADD COLUMN shown_text text,
  ADD COLUMN shown_cut boolean,
  ADD COLUMN shown_rules integer;
UPDATE note SET content = regexp_replace(left(content, 100000), '(<[^<>]*|&#?\\w{0,64})$', ''), truncated = true
WHERE octet_length(content) > 100000 AND length(content) > 100000;
`;

const down = `
ALTER TABLE note DROP COLUMN truncated, DROP COLUMN shown_html, DROP COLUMN shown_text, DROP COLUMN shown_cut,
  DROP COLUMN shown_rules;
`;

export class ShownNotes1763810000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}
