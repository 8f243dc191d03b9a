import { randomBytes } from "node:crypto";
import { createConnection, type Socket } from "node:net";

export const CONTINUED = 0;
export const TEXT = 1;
export const PING = 9;
export const PONG = 10;

/** A masked frame, as a client's must be. @param announced a length that it claims and does not keep */
export function frame(opcode: number, payload: Buffer | string, { final = true, announced = 0 } = {}): Buffer {
  const data = Buffer.from(payload);
  const length = announced || data.length;
  const head = Buffer.alloc(length < 126 ? 6 : length < 65_536 ? 8 : 14);
  head[0] = (final ? 128 : 0) + opcode;
  if (length < 126) {
    head[1] = 128 + length;
  } else if (length < 65_536) {
    head[1] = 128 + 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 128 + 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  // The mask is zero: the payload stands as it is.
  return Buffer.concat([head, data]);
}

export const message = (content: object): Buffer => frame(TEXT, JSON.stringify(content));
export const times = (count: number, bytes: Buffer): Buffer => Buffer.concat(Array(count).fill(bytes));

/** An upgrade's request, or the half of it. */
export function upgrade(port: number, headers: Record<string, string> = {}, half = false): string {
  const lines = [
    "GET /graphql HTTP/1.1",
    `Host: 127.0.0.1:${port}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`,
    "Sec-WebSocket-Protocol: graphql-transport-ws",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return `${lines.join("\r\n")}\r\n${half ? "" : "\r\n"}`;
}

/** A peer that keeps to no protocol, and counts what it is sent. */
export class RawPeer {
  readonly socket: Socket;
  readonly opened: Promise<void>;
  readonly closed: Promise<void>;
  isClosed = false;
  received = Buffer.alloc(0);

  constructor(url: string) {
    this.socket = createConnection(Number(new URL(url).port), "127.0.0.1");
    this.socket.on("error", () => undefined);
    this.socket.on("data", (chunk: Buffer) => {
      this.received = Buffer.concat([this.received, chunk]);
    });
    this.opened = new Promise((resolve) => this.socket.once("connect", resolve));
    this.closed = new Promise((resolve) => {
      this.socket.once("close", () => {
        this.isClosed = true;
        resolve();
      });
    });
  }

  static async upgraded(url: string, headers: Record<string, string> = {}): Promise<RawPeer> {
    const peer = new RawPeer(url);
    await peer.opened;
    peer.socket.write(upgrade(Number(new URL(url).port), headers));
    await peer.told("\r\n\r\n");
    return peer;
  }

  /** Upgraded, and known by a token. */
  static async known(url: string, token: string): Promise<RawPeer> {
    const peer = await RawPeer.upgraded(url);
    peer.socket.write(message({ type: "connection_init", payload: { authorization: `Bearer ${token}` } }));
    await peer.told("connection_ack");
    return peer;
  }

  /** Waits until it was sent the text, or the connection has ended. */
  async told(text: string): Promise<void> {
    while (!this.isClosed && !this.received.includes(text)) {
      await Promise.race([this.closed, new Promise((resolve) => this.socket.once("data", resolve))]);
    }
  }

  count(text: string): number {
    return this.received.toString("latin1").split(text).length - 1;
  }

  /** The code of the close frame that it was sent last; null where there was none. */
  get closeCode(): number | null {
    const at = this.received.lastIndexOf(0x88);
    return at >= 0 && at + 4 <= this.received.length ? this.received.readUInt16BE(at + 2) : null;
  }

  end(): void {
    this.socket.destroy();
  }
}
