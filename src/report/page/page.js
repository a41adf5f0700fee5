// The page as a whole: title, contents, sections, light and dark, printing.

const makers = {paragraph: makeParagraph, listing: makeListing, notice: makeNotice, judgement: makeJudgement, cards: makeCards, table: makeTable, figure: makeFigure};

function eachTable(sections, visit) {
  for (const section of sections) {
    section.blocks.filter(block => block.block === 'table').forEach(visit);
    eachTable(section.sections || [], visit);
  }
}

function makeSection(section, level, number) {
  const heading = make('h' + Math.min(6, level + 1), null, make('span', {class: 'section-number'}, number), section.title,
    make('a', {class: 'anchor', href: '#' + section.id, 'aria-label': 'Link to ' + section.title}, '#'));
  const content = [section.blocks.map(block => makers[block.block](block)),
    (section.sections || []).map((inner, index) => makeSection(inner, level + 1, number + '.' + (index + 1)))];
  return make('section', {id: section.id, class: 'level-' + level},
    section.folded ? make('details', {class: 'fold'}, make('summary', null, heading), content) : [heading, content]);
}

// What lies in folded sections is unfolded when a link leads to it.
function unfold(link) {
  const target = link.length > 1 && document.getElementById(decodeURIComponent(link.slice(1)));
  if (target && target.firstElementChild && target.firstElementChild.matches('.fold')) target.firstElementChild.open = true;
  for (let node = target; node; node = node.parentElement) if (node.matches('.fold')) node.open = true;
  return target;
}

function makeContents(sections, prefix, depth) {
  return make('ol', null, sections.map((section, index) => {
    const number = prefix + (index + 1);
    return make('li', null, make('a', {href: '#' + section.id, 'data-section': section.id},
      make('span', {class: 'section-number'}, number), make('span', null, section.title)),
      depth > 1 && section.sections ? makeContents(section.sections, number + '.', depth - 1) : null);
  }));
}

// The reader's choice holds for this page; without one, the system's.
const theme = {
  key: 'ridgeline-report-theme',
  stored() {
    try { return localStorage.getItem(this.key); } catch (error) { return null; }
  },
  store(name) {
    try { localStorage.setItem(this.key, name); } catch (error) { /* It is kept until the page is closed. */ }
  },
  current() {
    return document.documentElement.dataset.theme;
  },
  set(name) {
    document.documentElement.dataset.theme = name;
    this.show();
  },
  show() {
    const other = this.current() === 'dark' ? 'light' : 'dark';
    this.button.replaceChildren(icon(other === 'dark' ? 'M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1z' : 'M8 4.8a3.2 3.2 0 1 0 0 6.4a3.2 3.2 0 1 0 0-6.4M8 .8v1.7M8 13.5v1.7M.8 8h1.7M13.5 8h1.7M2.9 2.9l1.2 1.2M11.9 11.9l1.2 1.2M13.1 2.9l-1.2 1.2M4.1 11.9l-1.2 1.2'),
      document.createTextNode(other === 'dark' ? 'Dark' : 'Light'));
    this.button.setAttribute('aria-label', 'Change to ' + other + ' colours');
  },
  start() {
    this.button = make('button', {type: 'button', class: 'tool theme', id: 'page-theme', onclick: () => {
      const next = this.current() === 'dark' ? 'light' : 'dark';
      this.set(next);
      this.store(next);
    }});
    const system = matchMedia('(prefers-color-scheme: dark)');
    const choose = () => this.set(this.stored() || (system.matches ? 'dark' : 'light'));
    system.addEventListener('change', choose);
    choose();
  }
};

// Marks the section that is being read.
function followReading(contents) {
  const links = new Map([...contents.querySelectorAll('a')].map(link => [link.dataset.section, link]));
  const sections = [...links.keys()].map(id => document.getElementById(id));
  let waiting = false;
  const update = () => {
    waiting = false;
    let current = sections[0];
    for (const section of sections) if (section.offsetParent && section.getBoundingClientRect().top < 120) current = section;
    for (const [id, link] of links) {
      if (current && id === current.id) {
        if (link.getAttribute('aria-current')) continue;
        link.setAttribute('aria-current', 'true');
        // Not scrollIntoView, which would move the page too.
        const list = contents.parentElement, top = link.offsetTop;
        if (top < list.scrollTop + 40 || top > list.scrollTop + list.clientHeight - 60) list.scrollTop = top - list.clientHeight / 2;
      } else {
        link.removeAttribute('aria-current');
      }
    }
  };
  window.addEventListener('scroll', () => { if (!waiting) requestAnimationFrame(update); waiting = true; }, {passive: true});
  update();
}

// On paper nothing waits until it is seen, and nothing is folded.
function watchPrinting() {
  let opened = [];
  const paper = on => () => {
    document.documentElement.classList.toggle('paper', on);
    if (on) opened = [...document.querySelectorAll('.fold:not([open])')];
    opened.forEach(fold => { fold.open = on; });
  };
  window.addEventListener('beforeprint', paper(true));
  window.addEventListener('afterprint', paper(false));
}

(function build() {
  eachTable(report.sections, table => {
    if (table.runs) table.rows.forEach(row => ((row[0] || {}).r || []).slice(0, 1).forEach(run => knownRuns.add(run)));
  });
  theme.start();
  const contents = makeContents(report.sections, '', 2);
  const wide = matchMedia('(min-width: 1500px)');
  const details = make('details', {class: 'contents', open: wide.matches}, make('summary', null, 'Contents'), make('nav', {'aria-label': 'Contents'}, contents));
  wide.addEventListener('change', () => { details.open = wide.matches; });
  contents.addEventListener('click', () => { if (!wide.matches) details.open = false; });
  const main = make('main', null, report.sections.map((section, index) => makeSection(section, 1, String(index + 1))));
  append(document.body, [
    make('a', {class: 'skip', href: '#page-main'}, 'Skip the contents'),
    make('header', {class: 'page-head'}, make('div', {class: 'page-head-in'},
      make('div', null, make('h1', null, report.title), report.subtitle ? make('p', {class: 'subtitle'}, report.subtitle) : null,
        make('p', {class: 'made'}, [report.program, report.generated ? make('time', {datetime: report.generated}, report.generated.replace('T', ' ').replace(/(:\d\d)(\.\d+)?Z$/, '$1 UTC')) : null]
          .filter(Boolean).map((part, index) => [index ? ' · ' : '', part]))),
      theme.button)),
    make('div', {class: 'page-body', id: 'page-main'}, details, main), tip]);
  followReading(details.querySelector('ol'));
  watchPrinting();
  document.addEventListener('click', event => {
    const link = event.target.closest('a[href^="#"]');
    if (link) unfold(link.hash);
  });
  window.addEventListener('hashchange', () => unfold(location.hash));
  const target = unfold(location.hash);
  if (target) target.scrollIntoView();
  document.documentElement.dataset.state = 'ready';
})();
