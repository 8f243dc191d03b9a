import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { z } from "zod";
import { ServiceError } from "./errors";

/** Text that must never be printed: strings, JSON and console output all show `[secret]`; only {@link reveal} gives it. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "[secret]";
  }

  toJSON(): string {
    return "[secret]";
  }

  [inspect.custom](): string {
    return "[secret]";
  }
}

export const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FORMAT = 1;

export interface EncryptionKey {
  id: string;
  key: Buffer;
}

/** How an operator writes keys. */
export const encryptionKeys = z
  .string({ error: "is required: id:base64key[,id:base64key] with 32 bytes each, the first seals" })
  .transform((text, context) => {
    const keys: EncryptionKey[] = [];
    for (const part of text.split(",")) {
      const match = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/]+={0,2})$/.exec(part.trim());
      const key = Buffer.from(match?.[2] ?? "", "base64");
      if (!match?.[1] || key.length !== KEY_BYTES) {
        context.addIssue("must be id:base64key[,id:base64key]; make a key with: openssl rand -base64 32");
        return z.NEVER;
      }
      keys.push({ id: match[1], key });
    }
    if (new Set(keys.map(({ id }) => id)).size !== keys.length) {
      context.addIssue("names one key id twice: each key needs an id of its own");
      return z.NEVER;
    }
    return keys;
  });

/** How an operator writes the database's address: a "#", "/" or "?" in the password as it is would end it early. */
export const databaseAddress = z
  .string()
  .refine(isWhole, {
    error:
      "must be postgresql://user:password@host:5432/database, with # / ? @ % of the password as %23 %2F %3F %40 %25",
  })
  .transform((text) => new Secret(text));

function isWhole(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, pathname, searchParams, search, hash } = new URL(text);
  const isCut = hash !== "" || pathname.includes("@") || /@[^&]*\//.test(search);
  return /^postgres(ql)?:$/.test(protocol) && !isCut && (hostname !== "" || searchParams.has("host"));
}

/** The same address, whose sessions begin with these settings too. */
export function withOptions(url: Secret, options: string): Secret {
  const more = new URL(url.reveal());
  more.searchParams.set("options", `${more.searchParams.get("options") ?? ""} ${options}`.trim());
  return new Secret(more.href);
}

/** A sealed value could not be opened: another row's, altered, or sealed under a key that is no longer configured. */
export class UnsealError extends ServiceError {
  readonly code = "UNSEAL_FAILED";
}

/**
 * AES-256-GCM. The first key seals, every key opens (design: rotation). A sealed blob is
 * `format(1) | idLength(1) | keyId | nonce(12) | tag(16) | ciphertext`. `place` says whose value it is and in which
 * column; it is authenticated, so a blob moved to another row or column does not open.
 */
export class Keyring {
  readonly #keys: Map<string, Buffer>;
  readonly #first: EncryptionKey;

  constructor(keys: readonly EncryptionKey[]) {
    const first = keys[0];
    if (!first) throw new Error("a keyring needs at least one key");
    this.#first = first;
    this.#keys = new Map(keys.map(({ id, key }) => [id, key]));
  }

  seal(plaintext: string, place: readonly string[]): Buffer {
    const id = Buffer.from(this.#first.id);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#first.key, nonce, { authTagLength: TAG_BYTES });
    const header = Buffer.concat([Buffer.from([FORMAT, id.length]), id]);
    cipher.setAAD(Buffer.concat([header, placeBytes(place)]));
    const ciphertext = Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final()]);
    return Buffer.concat([header, nonce, cipher.getAuthTag(), ciphertext]);
  }

  /** Whether a sealed blob names the key that seals now. */
  isUnderFirstKey(blob: Buffer): boolean {
    return keyIdOf(blob) === this.#first.id;
  }

  /** What nobody can guess without the key, the same whenever it is asked for: under each key, the first one's first. */
  tagsOf(place: readonly string[]): Buffer[] {
    return [...this.#keys.values()].map((key) => createHmac("sha256", key).update(placeBytes(place)).digest());
  }

  open(blob: Buffer, place: readonly string[]): string {
    const idLength = blob[1];
    if (blob[0] !== FORMAT || idLength === undefined || blob.length < 2 + idLength + NONCE_BYTES + TAG_BYTES) {
      throw new UnsealError("a sealed value is not in a format that this version knows");
    }
    const header = blob.subarray(0, 2 + idLength);
    const keyId = header.subarray(2).toString();
    const key = this.#keys.get(keyId);
    if (!key) throw new UnsealError(`a value was sealed under a key that is not in ENCRYPTION_KEYS: ${LOST}`);
    const nonceEnd = header.length + NONCE_BYTES;
    const tagEnd = nonceEnd + TAG_BYTES;
    const decipher = createDecipheriv("aes-256-gcm", key, blob.subarray(header.length, nonceEnd), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.concat([header, placeBytes(place)]));
    decipher.setAuthTag(blob.subarray(nonceEnd, tagEnd));
    try {
      return Buffer.concat([decipher.update(blob.subarray(tagEnd)), decipher.final()]).toString("utf8");
    } catch (cause) {
      throw new UnsealError("a sealed value does not belong here or was altered", { cause });
    }
  }
}

const LOST = "put it back, or see A key is lost, in docs/operations.md";

/** The id of the key that sealed a blob; its header is enough. */
export function keyIdOf(blob: Buffer): string {
  return blob.subarray(2, 2 + (blob[1] ?? 0)).toString();
}

/** JSON keeps the parts apart: ["a","bc"] and ["ab","c"] must not authenticate each other. */
function placeBytes(place: readonly string[]): Buffer {
  return Buffer.from(JSON.stringify(place));
}
