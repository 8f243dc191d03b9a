/** The last line of a test run: how many tests passed and failed, in one form for people and machines. */
module.exports = class TallyReporter {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, numPendingTests }) {
    const failed = numFailedTests + numRuntimeErrorTestSuites;
    const skipped = numPendingTests > 0 ? `, ${numPendingTests} skipped` : "";
    process.stdout.write(`\ntests: ${numPassedTests} passed, ${failed} failed${skipped}\n`);
  }
};
