/** The package has no types of its own: it is an array of local parts. */
declare module "role-based-email-addresses" {
  const localParts: readonly string[];
  export = localParts;
}
