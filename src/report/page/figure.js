// A figure on the page: its drawing comes with the page; here are legend, pointing at values, saving.

const drawings = [...document.getElementById('page-drawings').content.children];
const marksOf = {xy: pointMarks, bars: barMarks, area: areaMarks, spans: spanMarks, diagram: nodeMarks};
const figureViews = [];

function legendNames(figure) {
  if (figure.kind === 'spans') return figure.groups;
  return figure.kind === 'diagram' ? [...new Set(figure.nodes.map(node => node.group || ''))] : figure.series.map(series => series.name);
}

class FigureView {
  constructor(figure) {
    const drawing = drawings[figureViews.length];
    this.figure = figure;
    this.svg = drawing.querySelector('.plot');
    this.swatches = [...drawing.querySelectorAll('.swatch')];
    this.remarks = [...drawing.querySelectorAll('p')];
    this.names = legendNames(figure);
    this.hidden = new Set((figure.series || []).map((series, index) => series.hidden ? index : -1).filter(index => index >= 0));
    this.visible = index => !this.hidden.has(index);
    if (this.svg.dataset.x) [this.x, this.y] = [scaleOf(this.svg.dataset.x), scaleOf(this.svg.dataset.y)];
    this.cursor = makeSvg('g', {class: 'cursor', 'aria-hidden': 'true'});
    this.current = -1;
    this.box = make('div', {class: 'canvas canvas-' + figure.kind, tabindex: 0, 'aria-label': figure.title + ': use the arrow keys to read values', role: 'group'},
      append(this.svg, [this.cursor]));
    this.node = this.makeNode();
    this.listen();
    figureViews.push(this);
  }

  makeNode() {
    const figure = this.figure;
    const title = make('div', {class: 'block-title'}, make('span', {class: 'block-number'}, 'Figure ' + (figureViews.length + 1)), ' ', figure.title);
    const tools = make('div', {class: 'tools'}, figure.kind === 'spans' ? spanControls(this) : null,
      make('button', {type: 'button', class: 'tool', title: 'Save this figure as an SVG file', onclick: () => this.save()}, 'SVG'),
      make('button', {type: 'button', class: 'tool', title: 'Save the values of this figure as a CSV file', onclick: () => this.saveValues()}, 'CSV'));
    const known = (figure.runs || []).filter(run => knownRuns.has(run));
    const hint = figure.kind === 'spans' ? 'Drag over a range to zoom in, or turn the wheel with Ctrl.' : '';
    const caption = [figure.caption, hint ? make('span', {class: 'hint'}, figure.caption ? ' ' : '', hint) : null,
      known.length ? make('span', {class: 'hint'}, ' Rests on ', withEvidence(known.length === 1 ? 'run ' + known[0] : known.length + ' runs', known, figure.title), '.') : null];
    return make('figure', {class: 'figure figure-' + figure.kind, id: figure.id}, make('div', {class: 'block-head'}, title, tools),
      figure.reading ? make('p', {class: 'reading'}, figure.reading) : null, this.makeLegend(), this.box,
      figure.caption || hint || known.length ? make('figcaption', {class: 'caption'}, caption) : null,
      this.remarks, makeNotes(figure.id, figure.notes));
  }

  // One entry says nothing that the title does not, unless there are roofs or groups to tell apart.
  makeLegend() {
    if (this.names.length < 2 && (!this.names.length || this.figure.kind !== 'xy')) return null;
    this.buttons = this.names.map((name, index) => make('button', {
      type: 'button', class: 'legend-entry', 'aria-pressed': String(this.visible(index)), 'data-entry': index,
      title: 'Show or hide ' + name, onclick: event => this.toggle(index, event.altKey || event.shiftKey)
    }, this.swatches[index], make('span', null, name || 'other')));
    return make('div', {class: 'legend', role: 'group', 'aria-label': 'Series of ' + this.figure.title}, this.buttons);
  }

  // With Alt or Shift: this one alone, or all again.
  toggle(index, alone) {
    const hidden = this.hidden;
    if (alone) {
      const others = this.names.map((_, place) => place).filter(place => place !== index);
      const already = !hidden.has(index) && others.every(place => hidden.has(place));
      hidden.clear();
      if (!already) others.forEach(place => hidden.add(place));
    } else if (!hidden.delete(index)) {
      hidden.add(index);
    }
    this.buttons.forEach((button, place) => button.setAttribute('aria-pressed', String(!hidden.has(place))));
    this.showHidden();
  }

  // Boxes of a network are dimmed, for arrows lead to them.
  showHidden() {
    this.svg.querySelectorAll('[data-series]').forEach(node => {
      const off = !this.visible(Number(node.dataset.series));
      if (this.figure.kind === 'diagram') node.classList.toggle('dim', off);
      else if (off) node.setAttribute('display', 'none');
      else node.removeAttribute('display');
    });
    this.tell(-1);
  }

  nameLine(index, text = this.names[index]) {
    return {text: text, strong: true, swatch: this.swatches[index]};
  }

  // Where the pointer is, in pixels of the drawing.
  place(event) {
    const place = this.svg.getBoundingClientRect(), scale = this.svg.viewBox.baseVal.width / place.width;
    return [(event.clientX - place.left) * scale, (event.clientY - place.top) * scale];
  }

  // Found when somebody points for the first time.
  shown() {
    this.marks = this.marks || marksOf[this.figure.kind](this);
    return this.marks.filter(mark => mark.column || this.visible(mark.series));
  }

  nearest(x, y) {
    const inside = this.figure.kind === 'spans' || this.figure.kind === 'diagram';
    let best = -1, least = 32;
    this.shown().forEach((mark, index) => {
      const dx = mark.box ? Math.max(mark.box[0] - x, 0, x - mark.box[2]) : mark.x - x;
      const dy = mark.box ? Math.max(mark.box[1] - y, 0, y - mark.box[3]) : mark.y - y;
      const distance = mark.column ? Math.abs(dx) : inside && (dx > 2 || dy > 0) ? 1e3 : Math.hypot(dx, dy);
      if (distance < least) [best, least] = [index, distance];
    });
    return best;
  }

  // Marks a value and tells it, beside the pointer or beside itself.
  tell(index, x, y) {
    this.current = index;
    this.cursor.replaceChildren();
    const mark = index < 0 ? null : this.shown()[index];
    if (this.figure.kind === 'diagram') this.svg.querySelectorAll('.edge').forEach(edge => edge.classList.toggle('near',
      Boolean(mark) && (edge.dataset.from === mark.node || edge.dataset.to === mark.node)));
    if (!mark) return hideTip();
    if (mark.column) append(this.cursor, [makeSvg('line', {x1: mark.x, x2: mark.x, y1: this.y.to, y2: this.y.from})]);
    else if (mark.box) append(this.cursor, [makeSvg('rect', {x: mark.box[0] - 1, y: mark.box[1] - 1, width: mark.box[2] - mark.box[0] + 2, height: mark.box[3] - mark.box[1] + 2, rx: 2})]);
    else append(this.cursor, [makeSvg('circle', {cx: mark.x, cy: mark.y, r: 7})]);
    if (x === undefined) {
      const place = this.cursor.getBoundingClientRect();
      [x, y] = [place.right, place.bottom];
    }
    showTip(x, y, mark.lines());
  }

  listen() {
    const point = event => {
      if (event.buttons <= 1) this.tell(this.nearest(...this.place(event)), event.clientX, event.clientY);
    };
    this.box.addEventListener('pointermove', point);
    this.box.addEventListener('pointerdown', point);
    this.box.addEventListener('pointerleave', () => this.tell(-1));
    this.box.addEventListener('blur', () => this.tell(-1));
    this.box.addEventListener('keydown', event => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (event.key === 'Escape') this.tell(-1);
      if (!step || !this.shown().length) return;
      event.preventDefault();
      this.tell(Math.max(0, Math.min(this.shown().length - 1, this.current + step)));
    });
  }

  // The page's style does not travel with the file: its colours are written into the elements.
  save() {
    const copy = this.svg.cloneNode(true), style = getComputedStyle(document.documentElement);
    setAttributes(copy, {xmlns: 'http://www.w3.org/2000/svg', 'font-family': style.getPropertyValue('--sans')});
    copy.insertBefore(makeSvg('rect', {width: '100%', height: '100%', fill: 'var(--paper)'}), copy.firstChild);
    const text = new XMLSerializer().serializeToString(copy);
    saveFile(this.figure.id + '.svg', 'image/svg+xml', text.replace(/"var\((--[\w-]+)\)"/g, (_, name) => '"' + style.getPropertyValue(name).trim() + '"'));
  }

  saveValues() {
    const figure = this.figure, unit = axis => axis.unit ? ' (' + axis.unit + ')' : '';
    let rows;
    if (figure.kind === 'spans') {
      rows = [['track', 'name', 'group', 'begin' + unit(figure.x), 'end' + unit(figure.x)],
        ...figure.spans.map(span => [figure.tracks[span[0]], figure.names[span[1]], figure.groups[span[2]], span[3], span[4]])];
    } else if (figure.kind === 'diagram') {
      rows = [['id', 'title', 'detail', 'group', 'weight', 'inputs'], ...figure.nodes.map((node, index) => [node.id, node.title, node.detail, node.group, node.weight,
        figure.edges.filter(edge => edge[1] === index).map(edge => figure.nodes[edge[0]].id).join(' ')])];
    } else {
      const name = x => figure.x.categories && figure.x.categories[x] !== undefined ? figure.x.categories[x] : x;
      rows = [['series', (figure.x.title || 'x') + unit(figure.x), (figure.y.title || 'y') + unit(figure.y), 'low', 'high', 'label', 'detail'],
        ...figure.series.flatMap(series => series.points.map(point => [series.name, name(point[0]), ...point.slice(1)]))];
    }
    saveFile(figure.id + '.csv', 'text/csv;charset=utf-8', csvText(rows));
  }
}

function makeFigure(figure) {
  return new FigureView(figure).node;
}
