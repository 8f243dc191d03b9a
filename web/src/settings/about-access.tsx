import { Card } from "../ui/parts";

export function AboutAccess() {
  return (
    <Card title="What the service may do">
      <div className="stack stack-tight">
        <h3>Reads</h3>
        <p className="muted small">
          Deals, people, organizations, pipelines, stages, activities, notes and users: what the authorizing user sees.
          Of mail only the times of the last message, never its content.
        </p>
        <h3>Writes</h3>
        <p className="muted small">
          Meeting notes, and one field per kind of record that you nominate. Only on records of people who were in a
          recorded meeting. Every note shows the authorizing user as its author.
        </p>
        <h3>Never</h3>
        <p className="muted small">
          Deletes anything, changes other fields, creates activities, or changes the CRM's settings.
        </p>
      </div>
    </Card>
  );
}
