const { default: Sequencer } = require("@jest/test-sequencer");

/** The files of the page, each of which has a browser, stand evenly among the others: about one browser at a time. */
module.exports = class SpreadSequencer extends Sequencer {
  sort(tests) {
    const slowestFirst = super.sort(tests);
    const isOfPage = ({ path }) => path.includes("/test/web/");
    const evenly = (some) => some.map((test, place) => ({ test, at: (place + 0.5) / some.length }));
    const kinds = [slowestFirst.filter(isOfPage), slowestFirst.filter((test) => !isOfPage(test))];
    return kinds
      .flatMap(evenly)
      .sort((a, b) => a.at - b.at)
      .map(({ test }) => test);
  }
};
