import { WebSocketServer } from "ws";
import { say } from "./print";

// The least that a server on `ws` does: one message for all, written to each socket. It proves no token and knows no tenant.

const STATE = {
  state: "CONNECTED",
  boundEmail: "admin@example.com",
  trouble: null,
  sync: { lastSuccessAt: "2026-11-26T00:00:00.000Z" },
};
const next = JSON.stringify({ id: "1", type: "next", payload: { data: { connectionStatusChanged: STATE } } });

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false }, () => {
  say(`listening at ${JSON.stringify(server.address())}`);
});
server.on("connection", (socket) => {
  socket.on("message", (data) => {
    const { type } = JSON.parse(String(data)) as { type: string };
    socket.send(type === "subscribe" ? next : JSON.stringify({ type: "connection_ack" }));
  });
});
process.on("message", () => {
  for (const socket of server.clients) socket.send(next);
});
