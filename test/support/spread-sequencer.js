const { statSync } = require("node:fs");
const { default: Sequencer } = require("@jest/test-sequencer");

/** Largest first, and the files of the page, each of which has a browser, evenly among the others: about one browser at a time. */
module.exports = class SpreadSequencer extends Sequencer {
  sort(tests) {
    const largestFirst = [...tests].sort((a, b) => statSync(b.path).size - statSync(a.path).size);
    const isOfPage = ({ path }) => path.includes("/test/web/");
    const evenly = (some) => some.map((test, place) => ({ test, at: (place + 0.5) / some.length }));
    const kinds = [largestFirst.filter(isOfPage), largestFirst.filter((test) => !isOfPage(test))];
    return kinds
      .flatMap(evenly)
      .sort((a, b) => a.at - b.at)
      .map(({ test }) => test);
  }
};
