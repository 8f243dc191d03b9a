/** All tests in one run, in which those that wait leave their time to the others. */
module.exports = {
  ...require("./jest.config.js"),
  testPathIgnorePatterns: ["/node_modules/"],
  testSequencer: "<rootDir>/test/support/spread-sequencer.js",
};
