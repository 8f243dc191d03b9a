/** An answer before it is on the wire: faults decide later how much of it gets there. */
export interface Answer {
  status: number;
  body: string;
  contentType: string;
  /** Null takes away one that every answer has. */
  headers?: Readonly<Record<string, string | null>>;
}

const JSON_TYPE = "application/json; charset=utf-8";

export function json(status: number, body: unknown): Answer {
  return { status, body: JSON.stringify(body), contentType: JSON_TYPE };
}

export function jsonText(body: string, status = 200): Answer {
  return { status, body, contentType: JSON_TYPE };
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

/** The wire names the field since May 2026; where in the answer is not known, so that no client should count on it. */
export function invalidField(code: string, problem: string): Refusal {
  const error = `Validation failed: custom_fields.${code}: ${problem}`;
  const additional_data = { field_code: code };
  return new Refusal(json(400, { success: false, error, code: "ERR_SCHEMA_VALIDATION_FAILED", additional_data }));
}

/** Version 1 has no code in its refusals. */
export function refusedV1(status: number, error: string): Refusal {
  return new Refusal(json(status, { success: false, error, error_info: errorInfo, data: null, additional_data: null }));
}

/** A write to a record in the bin. The wire's code is known for deals; the other two are made after it. */
export function inTheBin(name: string): Refusal {
  const error = `${name} is deleted, you must first restore it`;
  return new Refusal(json(400, { success: false, error, code: `ERR_${name.toUpperCase()}_DELETED` }));
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
