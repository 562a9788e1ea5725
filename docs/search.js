// How the search of this site ranks its pages. Sphinx puts this file into _static/language_data.js, which the page of
// the search loads after searchtools.js. Sphinx's own ranking asks for every word of a question and orders equal pages
// by the alphabet. Here a page may lack words: rare words count more, and words of the title, of headings and of the
// page's line "Also called" count more than words of the text.

const PAGE_WORDS = {}; // page: phrases of its line "Also called"; docs/conf.py fills it
const LEFT_OUT = []; // the changelog and lists of links
const BACKGROUND = []; // pages of the part "Background", and lists of pages

const FILLERS = new Set(
  "recdf use using used get want need make compute calculate way handle work one two say tell know try give please support library package possible happen mean".split(" "),
);

const rankPages = (query) => {
  const index = Search._index;
  const stemmer = new Stemmer();
  const stems = (text) =>
    splitQuery(text.toLowerCase())
      .filter((word) => !stopwords.has(word))
      .map((word) => stemmer.stemWord(word));
  const pages = (found) => (found === undefined ? [] : [].concat(found));
  const n = index.docnames.length;
  const tellingOf = (found) => {
    const telling = found.filter((word) => !FILLERS.has(word));
    return telling.length ? telling : found;
  };
  const asked = [...new Set(tellingOf(stems(query)))];

  // Words of the titles, headings and lines of each page.
  const fields = index.docnames.map((name, page) => ({
    title: new Set(stems(index.titles[page])),
    phrases: (PAGE_WORDS[name] || []).map((phrase) => [...new Set(tellingOf(stems(phrase)))]),
    headings: [],
    terms: 0,
  }));
  for (const [heading, places] of Object.entries(index.alltitles))
    for (const [page, id] of places)
      if (id !== null) fields[page].headings.push({ heading, id, words: new Set(stems(heading)) });
  for (const found of Object.values(index.terms)) for (const page of pages(found)) fields[page].terms += 1;

  const weights = new Map();
  const inText = new Map();
  const words = Object.keys(index.terms);
  const lineWords = new Set(fields.flatMap((field) => field.phrases.flat()));
  for (const word of asked) {
    const found = new Map(); // page: 1 for the word itself, less for a longer word that begins with it
    const known = Object.hasOwn(index.terms, word) || Object.hasOwn(index.titleterms, word);
    for (const page of [...pages(known ? index.terms[word] : []), ...pages(known ? index.titleterms[word] : [])])
      found.set(page, 1);
    if (!known && word.length > 3 && !lineWords.has(word))
      for (const longer of words.filter((one) => one.startsWith(word)))
        for (const page of pages(index.terms[longer])) found.set(page, 0.6);
    inText.set(word, found);
    weights.set(word, found.size ? Math.log(1 + n / found.size) : Math.log(1 + n));
  }

  const results = [];
  fields.forEach((field, page) => {
    const name = index.docnames[page];
    if (LEFT_OUT.includes(name)) return;
    const lineOf = new Set(field.phrases.flat());
    const inHeadings = new Set(field.headings.flatMap((one) => [...one.words]));
    const length = 1 / Math.log(10 + field.terms / 50);
    let score = 0;
    for (const word of asked) {
      const strength =
        Math.max(
          field.title.has(word) ? 3 : 0,
          lineOf.has(word) ? 2.5 : 0,
          inHeadings.has(word) ? 1.5 : 0,
        ) + 2 * length * (inText.get(word).get(page) || 0);
      score += strength * weights.get(word);
    }
    if (!score) return;
    const sum = (some) => some.reduce((total, word) => total + weights.get(word), 0);
    for (const phrase of field.phrases) {
      if (phrase.length && phrase.every((word) => weights.has(word)))
        score += (phrase.length > 1 ? 3 : 1) * sum(phrase);
    }
    let best = null;
    let most = 0.5 * sum(asked);
    for (const one of field.headings) {
      const shared = asked.filter((word) => one.words.has(word));
      const worth = sum(shared) * (shared.length / one.words.size) ** 0.5;
      if (worth > most) [best, most] = [one, worth];
    }
    if (best) score += most;
    if (name.startsWith("reference/")) score *= 0.7; // a guide before the signature
    if (BACKGROUND.includes(name)) score *= 0.85; // and before the reasons
    const title = index.titles[page];
    results.push([
      name,
      best ? `${title} > ${best.heading}` : title,
      best ? `#${best.id}` : "",
      null,
      score,
      index.filenames[page],
      SearchResultKind.text,
    ]);
  });
  // The last one is shown first. Of equal pages, the one that says less else is shown first.
  const size = new Map(index.docnames.map((name, page) => [name, fields[page].terms]));
  return results.sort((a, b) => a[4] - b[4] || size.get(b[0]) - size.get(a[0])).slice(-30);
};

Search._performSearch = (query) => rankPages(query);
