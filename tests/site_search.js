// Asks the search of a built site, with the code that a browser loads: node site_search.js SITE < questions.json
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const site = process.argv[2];
const element = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === "length" ? 0 : element),
  set: () => true,
  apply: () => element,
});
const world = { document: { readyState: "loading", addEventListener() {}, documentElement: element,
    getElementById: () => null, querySelectorAll: () => [], body: element },
  localStorage: { setItem() {} }, URLSearchParams, console, _: (text) => text, _ready: () => {},
  SPHINX_HIGHLIGHT_ENABLED: false, DOCUMENTATION_OPTIONS: { FILE_SUFFIX: ".html" } };
world.window = world;
vm.createContext(world);
for (const script of ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"])
  vm.runInContext(fs.readFileSync(path.join(site, script), "utf8"), world);
world.questions = JSON.parse(fs.readFileSync(0, "utf8"));
const answers = vm.runInContext(
  "questions.map((question) => Search._performSearch(...Search._parseQuery(question)).reverse().map((one) => one[0]))",
  world,
);
console.log(JSON.stringify(answers));
