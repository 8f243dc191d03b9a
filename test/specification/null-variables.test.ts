import { useService } from "../support/world";

const { service } = useService({ deals: 10, roles: ["api"] });

test.each([
  ["a switch", "query ($yes: Boolean = true) { viewer { userId @include(if: $yes) } }", { yes: null }],
  ["an argument", 'query ($id: ID = "x") { deal(id: $id) { id } }', { id: null }],
])(
  "%s that is null by a variable with a default is the client's mistake, no bug of ours",
  async (_what, query, variables) => {
    const { status, errors } = await service.ask(query, variables);
    expect([status, errors?.map(({ extensions }) => extensions.code)]).toEqual([400, ["BAD_USER_INPUT"]]);
  },
);
