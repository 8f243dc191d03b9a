/** An answer before it is on the wire: faults decide later how much of it gets there. */
export interface Answer {
  status: number;
  body: string;
  contentType: string;
  headers?: Readonly<Record<string, string>>;
}

const JSON_TYPE = "application/json; charset=utf-8";

export function json(status: number, body: unknown): Answer {
  return { status, body: JSON.stringify(body), contentType: JSON_TYPE };
}

export function jsonText(body: string): Answer {
  return { status: 200, body, contentType: JSON_TYPE };
}

export function html(status: number, body: string): Answer {
  return { status, body, contentType: "text/html; charset=utf-8" };
}

/** A request the CRM refuses; carries the answer. */
export class Refusal extends Error {
  constructor(readonly answer: Answer) {
    super(`refused with ${answer.status}`);
  }
}

export function invalid(problem: string): Refusal {
  const error = `Validation failed: ${problem}`;
  return new Refusal(json(400, { success: false, error, code: "ERR_SCHEMA_VALIDATION_FAILED" }));
}

export function notFound(what: string): Refusal {
  return new Refusal(json(404, { success: false, error: `${what} not found`, code: "ERR_NOT_FOUND" }));
}

const errorInfo = "Please check developers.pipedrive.com for more information.";

export function unauthorized(error: string): Refusal {
  return new Refusal(json(401, { success: false, error, errorCode: 401, error_info: errorInfo }));
}

export function overLimit(): Answer {
  return json(429, { success: false, error: "Request over limit" });
}

export function unknownRoute(): Answer {
  return json(404, { success: false, error: "Unknown method.", errorCode: 404, error_info: errorInfo });
}

export function wrongMethod(): Answer {
  return json(405, { success: false, error: "Method not allowed", errorCode: 405, error_info: errorInfo });
}
