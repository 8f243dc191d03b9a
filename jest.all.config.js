const { testPathIgnorePatterns, ...others } = require("./jest.config.js");

/** All tests in one run, in which those that wait leave their time to the others. */
module.exports = {
  ...others,
  testPathIgnorePatterns: ["/node_modules/"],
  testSequencer: "<rootDir>/test/support/spread-sequencer.js",
};
