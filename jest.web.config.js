/** The tests of the page in a browser, beside those of `jest.config.js`. */
module.exports = {
  ...require("./jest.config.js"),
  roots: ["<rootDir>/test/web"],
  testPathIgnorePatterns: ["/node_modules/"],
  // One browser at a time: it has a core to itself and the service the other.
  maxWorkers: 1,
};
