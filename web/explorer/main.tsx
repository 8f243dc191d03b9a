import { createGraphiQLFetcher } from "@graphiql/toolkit";
import { GraphiQL } from "graphiql";
import "graphiql/style.css";
import "./explorer.css";
import { createRoot } from "react-dom/client";

const HINT = `# Put a token into Headers below: { "authorization": "Bearer ..." }

query MayIConnect {
  viewer { userId role plan canManageConnection connectRefusal }
}
`;

declare global {
  interface Window {
    trustedTypes?: { createPolicy(name: string, rules: { createHTML(html: string): string }): unknown };
  }
}

/** GraphiQL writes descriptions as markup, by a library that lets none of theirs through. */
window.trustedTypes?.createPolicy("default", { createHTML: (html) => html });

const { origin } = window.location;
// Its headers go with the first message of a socket, where the service looks for the token.
const fetcher = createGraphiQLFetcher({
  url: `${origin}/graphql`,
  subscriptionUrl: `${origin.replace("http", "ws")}/graphql`,
});

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <GraphiQL fetcher={fetcher} defaultQuery={HINT} defaultHeaders={'{ "authorization": "Bearer " }'} />,
  );
