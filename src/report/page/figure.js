// A figure on the page: title, legend, drawing, caption; pointing at values; saving.

const drawKind = {xy: drawXy, bars: drawBars, area: drawArea, spans: drawSpans, diagram: drawDiagram};
const figureViews = [];

// What a legend names: series, or the groups of spans and boxes.
function legendEntries(figure) {
  if (figure.kind === 'spans') return figure.groups.map(name => ({name: name, look: {color: colorOf(name), style: 'box'}}));
  if (figure.kind === 'diagram') {
    return [...new Set(figure.nodes.map(node => node.group || ''))].map(name => ({name: name, look: {color: colorOf(name), style: 'box'}}));
  }
  const looks = looksOf(figure.series);
  return figure.series.map((series, index) => ({name: series.name, hidden: series.hidden,
    look: {...looks[index], style: figure.kind === 'xy' ? series.style : 'box'}}));
}

class FigureView {
  constructor(figure) {
    this.figure = figure;
    this.entries = legendEntries(figure);
    const hidden = new Set(this.entries.map((_, index) => index).filter(index => this.entries[index].hidden));
    this.state = {
      hidden: hidden, all: false, looks: this.entries.map(entry => entry.look),
      visible: index => this.state.all || !hidden.has(index)
    };
    this.box = make('div', {class: 'canvas canvas-' + figure.kind, tabindex: 0, 'aria-label': figure.title + ': use the arrow keys to read values', role: 'group'});
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
      this.makeLegend(), this.box,
      figure.caption || hint || known.length ? make('figcaption', {class: 'caption'}, caption) : null,
      this.lost = make('p', {class: 'caption lost', hidden: true}), makeNotes(figure.id, figure.notes));
  }

  // One entry says nothing that the title does not, unless there are roofs or groups to tell apart.
  makeLegend() {
    if (this.entries.length < 2 && (!this.entries.length || this.figure.kind !== 'xy')) return null;
    this.buttons = this.entries.map((entry, index) => make('button', {
      type: 'button', class: 'legend-entry', 'aria-pressed': String(!this.state.hidden.has(index)), 'data-entry': index,
      title: 'Show or hide ' + entry.name, onclick: event => this.toggle(index, event.altKey || event.shiftKey)
    }, swatch(entry.look), make('span', null, entry.name || 'other')));
    return make('div', {class: 'legend', role: 'group', 'aria-label': 'Series of ' + this.figure.title}, this.buttons);
  }

  // With Alt or Shift: this one alone, or all again.
  toggle(index, alone) {
    const hidden = this.state.hidden;
    if (alone) {
      const others = this.entries.map((_, place) => place).filter(place => place !== index);
      const already = !hidden.has(index) && others.every(place => hidden.has(place));
      hidden.clear();
      if (!already) others.forEach(place => hidden.add(place));
    } else if (!hidden.delete(index)) {
      hidden.add(index);
    }
    this.buttons.forEach((button, place) => button.setAttribute('aria-pressed', String(!hidden.has(place))));
    this.draw();
  }

  draw() {
    const scroll = [this.box.scrollLeft, this.box.scrollTop];
    this.width = this.box.clientWidth;
    this.drawn = drawKind[this.figure.kind](this.figure, this.box, this.state);
    this.cursor = makeSvg('g', {class: 'cursor', 'aria-hidden': 'true'});
    append(this.drawn.plot, [this.cursor]);
    this.box.replaceChildren(this.drawn.svg);
    [this.box.scrollLeft, this.box.scrollTop] = scroll;
    this.current = -1;
    this.sayLost();
  }

  // What a logarithmic axis cannot show is said, not dropped.
  sayLost() {
    const figure = this.figure;
    if (!figure.series) return;
    const lost = d3.sum(figure.series, series => series.points.filter(point => point[0] !== null && point[1] !== null &&
      ((figure.x.log && point[0] <= 0) || (figure.y.log && point[1] <= 0))).length);
    this.lost.hidden = !lost;
    if (lost) this.lost.textContent = lost + (lost === 1 ? ' value' : ' values') + ' at or below zero cannot be shown on a logarithmic axis.';
  }

  nearest(x, y) {
    let best = -1, least = 32;
    this.drawn.hits.forEach((hit, index) => {
      const dx = hit.box ? Math.max(hit.box[0] - x, 0, x - hit.box[2]) : hit.x - x;
      const dy = hit.box ? Math.max(hit.box[1] - y, 0, y - hit.box[3]) : hit.y - y;
      const distance = hit.column ? Math.abs(dx) : Math.hypot(dx, dy) + (hit.box && this.figure.kind !== 'bars' ? 1e3 * (dx > 2 || dy > 0) : 0);
      if (distance < least) [best, least] = [index, distance];
    });
    return best;
  }

  // Marks a value and tells it, beside the pointer or beside itself.
  tell(index, x, y) {
    this.current = index;
    this.cursor.replaceChildren();
    const hit = this.drawn.hits[index];
    if (this.drawn.point) this.drawn.point(hit);
    if (!hit) return hideTip();
    if (hit.column) append(this.cursor, [makeSvg('line', {x1: hit.x, x2: hit.x, y1: 0, y2: this.drawn.columnHeight})]);
    else if (hit.box) append(this.cursor, [makeSvg('rect', {x: hit.box[0] - 1, y: hit.box[1] - 1, width: hit.box[2] - hit.box[0] + 2, height: hit.box[3] - hit.box[1] + 2, rx: 2})]);
    else append(this.cursor, [makeSvg('circle', {cx: hit.x, cy: hit.y, r: 7})]);
    if (x === undefined) {
      const place = this.cursor.getBoundingClientRect();
      [x, y] = [place.right, place.bottom];
    }
    showTip(x, y, hit.lines());
  }

  listen() {
    const point = event => {
      if (!this.drawn || event.buttons > 1) return;
      const place = this.drawn.svg.getBoundingClientRect(), scale = this.drawn.svg.viewBox.baseVal.width / place.width;
      this.tell(this.nearest((event.clientX - place.left) * scale - this.drawn.left, (event.clientY - place.top) * scale - this.drawn.top), event.clientX, event.clientY);
    };
    this.box.addEventListener('pointermove', point);
    this.box.addEventListener('pointerdown', point);
    this.box.addEventListener('pointerleave', () => this.drawn && this.tell(-1));
    this.box.addEventListener('blur', () => this.drawn && this.tell(-1));
    this.box.addEventListener('keydown', event => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (event.key === 'Escape') this.tell(-1);
      if (!step || !this.drawn || !this.drawn.hits.length) return;
      event.preventDefault();
      this.tell(Math.max(0, Math.min(this.drawn.hits.length - 1, this.current + step)));
    });
  }

  // The page's style does not travel with the file: what it gives is written into the elements.
  save() {
    const copy = this.drawn.svg.cloneNode(true);
    const from = [this.drawn.svg, ...this.drawn.svg.querySelectorAll('*')], to = [copy, ...copy.querySelectorAll('*')];
    const wanted = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linejoin', 'opacity', 'font-family', 'font-size', 'font-weight', 'paint-order'];
    from.forEach((node, index) => {
      const style = getComputedStyle(node);
      to[index].removeAttribute('style');
      wanted.forEach(name => to[index].setAttribute(name, style.getPropertyValue(name)));
    });
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    const ground = makeSvg('rect', {width: '100%', height: '100%', fill: getComputedStyle(document.documentElement).getPropertyValue('--paper')});
    copy.insertBefore(ground, copy.firstChild);
    saveFile(this.figure.id + '.svg', 'image/svg+xml', new XMLSerializer().serializeToString(copy));
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
