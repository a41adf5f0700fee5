// Paragraphs, listings, notices and judgements, and the links from what is said to the runs it rests on.

const knownRuns = new Set();  // those that have a row in the list of runs
let runsTable = null;         // its controller; see table.js

function runsWords(runs) {
  const few = runs.slice(0, 12).join(', ') + (runs.length > 12 ? ', …' : '');
  return (runs.length === 1 ? 'run ' : runs.length + ' runs: ') + few;
}

// The content as a link to the rows of the runs it rests on; as it is, where none of them is listed.
function withEvidence(content, runs, says) {
  const known = (runs || []).filter(run => knownRuns.has(run));
  if (!known.length) return content;
  return make('a', {
    class: 'evidence', href: '#run-' + known[0], title: 'Rests on ' + runsWords(known),
    onclick: () => runsTable.select(known, says)
  }, content);
}

function makePieces(pieces) {
  return pieces.map(piece => {
    if (typeof piece === 'string') return piece;
    return withEvidence(piece.strong ? make('strong', null, piece.text) : piece.text, piece.runs, piece.text);
  });
}

const severities = {
  note: ['Note', 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M8 7.2v4M8 4.6v.3'],
  warning: ['Warning', 'M8 1.8L15 14H1zM8 6.3v3.6M8 11.8v.3'],
  error: ['Error', 'M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2zM5.6 5.6l4.8 4.8M10.4 5.6l-4.8 4.8']
};
const verdicts = {
  'confirmed': ['Confirmed', 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M4.9 8.2l2.2 2.2l4-4.6'],
  'not confirmed': ['Not confirmed', 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M5.5 5.5l5 5M10.5 5.5l-5 5'],
  'undecided': ['Undecided', 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M6 6.3c0-2.6 4-2.6 4 0c0 1.6-2 1.6-2 3.2M8 11.6v.3']
};

function makeParagraph(block) {
  return make('p', null, makePieces(block.pieces));
}

function makeListing(block) {
  return make('pre', {class: 'listing', tabindex: 0}, block.text);
}

function makeNotice(block) {
  const severity = severities[block.severity] ? block.severity : 'note';
  const [word, path] = severities[severity];
  return make('aside', {class: 'notice notice-' + severity, role: 'note'}, icon(path),
    make('div', {class: 'notice-body'},
      make('p', {class: 'notice-name'}, make('span', {class: 'notice-word'}, word), block.name),
      block.pieces.length ? make('p', null, makePieces(block.pieces)) : null));
}

// A number, a sentence, bars, and where to read on.
function makeCards(block) {
  return make('div', {class: 'cards'}, block.cards.map(card => {
    const most = Math.max(...card.bars.map(bar => bar[1]));
    return make('article', {class: 'card'}, make('p', {class: 'card-number'}, card.number),
      make('div', {class: 'card-bars'}, card.bars.map(bar => {
        const line = make('span', {class: 'card-bar'});
        line.style.width = 100 * bar[1] / most + '%';
        return [make('span', null, bar[0]), make('span', null, line), make('span', null, bar[2])];
      })),
      make('p', null, makePieces(card.pieces)), card.target ? make('a', {href: '#' + card.target}, 'Read on') : null);
  }));
}

function makeJudgement(block) {
  if (!block.tested) return make('p', {class: 'untested'}, 'Not tested here: ', make('em', null, block.statement), ' ', makePieces(block.pieces));
  const verdict = verdicts[block.verdict] ? block.verdict : 'undecided';
  const [word, path] = verdicts[verdict];
  return make('div', {class: 'judgement judgement-' + verdict.replace(' ', '-')},
    make('p', {class: 'judgement-statement'}, block.statement),
    make('p', {class: 'verdict'}, icon(path), word),
    make('p', {class: 'judgement-grounds'}, makePieces(block.pieces)));
}
