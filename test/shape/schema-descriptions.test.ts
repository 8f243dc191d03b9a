import { readdirSync, readFileSync } from "node:fs";
import {
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
} from "graphql";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";

/** Every type, field, argument, input field and enum value, by coordinate, with its description. */
function described(): [string, string][] {
  const types = Object.values(buildGraphQLSchema().getTypeMap()).filter(
    (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
  );
  return types.flatMap((type) => {
    const found: [string, string][] = [[type.name, type.description ?? ""]];
    const add = (name: string, text?: string | null) => found.push([`${type.name}.${name}`, text ?? ""]);
    if (isEnumType(type)) for (const { name, description } of type.getValues()) add(name, description);
    if (isInputObjectType(type))
      for (const { name, description } of Object.values(type.getFields())) add(name, description);
    if (!isObjectType(type) && !isInterfaceType(type)) return found;
    for (const { name, description, args } of Object.values(type.getFields())) {
      add(name, description);
      for (const argument of args) add(`${name}(${argument.name})`, argument.description);
    }
    return found;
  });
}

test("every type, field, argument, input and enum value of the schema is described", () => {
  expect(described().flatMap(([name, text]) => (text.trim() === "" ? [name] : []))).toEqual([]);
});

test("a description is a plain sentence, and says more than the name", () => {
  const plain = (text: string) => text.replace(/\W/g, "").toLowerCase();
  const odd = described().filter(([name, text]) => {
    const [last = ""] = name.split(/[.(]/).slice(-1);
    return !/[.:]$/.test(text.trim()) || (plain(text) === plain(last) && name !== "Crm.PIPEDRIVE") || text.length > 300;
  });
  expect(odd).toEqual([]);
});

const FOLDERS = ["src/schema", "src/platform", "src/writeback"];
const texts = FOLDERS.flatMap((folder) =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(`${folder}/${file}`, "utf8")),
);

/** What follows a check of an input's text, up to the end of its field's description, and the most characters that it takes. */
function limitedTexts(): { most: number; description: string }[] {
  return texts.flatMap((text) => {
    const numberOf = (name: string) => {
      const said = new RegExp(`const ${name} = (\\d+)`);
      const [, number = name] = said.exec(text) ?? texts.map((other) => said.exec(other)).find(Boolean) ?? [];
      return Number(number);
    };
    const keys = text.replaceAll('@Checked("idempotencyKey"', "@Text(1, 200)");
    return [...keys.matchAll(/@Text\(\d, (\w+)\)(.*?)!?\??: string/gs)].map(([, most = "", description = ""]) => ({
      most: numberOf(most),
      description,
    }));
  });
}

// Seen red: how long an idempotency key, an externalId or an address may be was told by the refusal alone.
test("how long a text may be is told before it is refused", () => {
  const limited = limitedTexts();
  expect(limited.length).toBeGreaterThan(9);
  expect(limited.filter(({ most }) => !(most > 0))).toEqual([]);
  expect(limited.filter(({ most, description }) => !description.includes(` ${most} characters`))).toEqual([]);
});
