// Tables: sorting, filtering, footnotes, saving as CSV.

let tableCount = 0;

function cellOf(cell) {
  return typeof cell === 'string' ? {t: cell} : cell;
}

// a, b, … z, aa, ab: letters, for numbers would read as powers.
function noteMark(index) {
  return (index >= 26 ? noteMark(Math.floor(index / 26) - 1) : '') + String.fromCharCode(97 + index % 26);
}

function makeNotes(id, notes) {
  if (!notes || !notes.length) return null;
  return make('ol', {class: 'notes'}, notes.map((note, index) =>
    make('li', {id: id + '-note-' + noteMark(index)}, make('sup', null, noteMark(index)), ' ', note)));
}

// A number and its interval stand apart, so that the numbers of a column end at one line.
function cellContent(cell, intervalWidth) {
  const split = cell.l !== undefined && cell.h !== undefined ? /^(.*?)\s*(\[.*\])$/.exec(cell.t) : null;
  if (!split) return [cell.t, intervalWidth ? padding(intervalWidth) : null];
  const interval = padding(intervalWidth);
  interval.textContent = split[2];
  return [split[1], interval];
}

function classes(...names) {
  return names.filter(Boolean).join(' ') || null;
}

function padding(characters) {
  const span = make('span', {class: 'interval'});
  span.style.minWidth = characters + 'ch';
  return span;
}

function marksRoom(characters) {
  return 0.4 + 0.45 * characters + 'rem';
}

function isMissing(cell) {
  return cell.v === undefined && (cell.t === '' || cell.t === 'n/a');
}

// What is missing stands last, whichever way the column is sorted.
function compareCells(a, b, column, direction) {
  const hasA = column.number ? a.v !== undefined && a.v !== null : !isMissing(a);
  const hasB = column.number ? b.v !== undefined && b.v !== null : !isMissing(b);
  if (hasA !== hasB) return hasA ? -1 : 1;
  if (!hasA) return 0;
  if (typeof a.v === 'number' && typeof b.v === 'number') return direction * (a.v - b.v);
  return direction * a.t.localeCompare(b.t, 'en', {numeric: true});
}

class TableView {
  constructor(table) {
    this.table = table;
    this.sorted = {column: -1, direction: 1};
    this.columns = table.columns.map((column, index) => {
      const cells = table.rows.map(row => cellOf(row[index] || 'n/a'));
      const widest = (read) => cells.reduce((most, cell) => Math.max(most, read(cell)), 0);
      return {
        column: column,
        intervalWidth: widest(cell => cell.l === undefined ? 0 : ((/\[.*\]$/.exec(cell.t) || [''])[0].length)),
        marks: widest(cell => (cell.n || []).map(noteMark).join(',').length)
      };
    });
    this.name = table.columns.findIndex(column => !column.away);
    this.headers = table.columns.map((column, index) => this.makeHeader(column, index));
    this.rows = table.rows.map((row, index) => this.makeRow(row, index));
    this.groups = this.makeGroups();
    this.body = make('tbody');
    this.node = this.makeNode();
    this.fill();
  }

  // Headings above the rows that have something in common: each {element, rows}.
  makeGroups() {
    const names = this.table.groups || [], count = table => table.columns.filter(column => !column.away).length;
    return names.map((name, index) => index && name === names[index - 1] ? null : {
      element: make('tr', {class: 'group'}, make('th', {scope: 'rowgroup', colspan: count(this.table)}, name)),
      rows: this.rows.filter(row => names[row.index] === name)
    }).filter(Boolean);
  }

  // Sorted rows stand without headings: each tells its own.
  fill() {
    const sorted = this.sorted.column >= 0;
    this.body.replaceChildren(...(this.groups.length && !sorted
      ? this.groups.flatMap(group => [group.element, ...group.rows.map(row => row.element)]) : this.order().map(row => row.element)));
    this.node.classList.toggle('sorted', sorted);
  }

  // In letters. Numbers of wide tables have their intervals below them; on paper their rows become lists.
  width() {
    const words = text => Math.max(...text.split(/[\s,]+/).map(word => word.length));
    return this.columns.reduce((sum, {column}, place) => column.away ? sum : sum + 3 + this.rows.reduce(
      (most, row) => Math.max(most, column.number ? row.cells[place].t.length : Math.min(row.cells[place].t.length, 24)),
      Math.max(words(column.title), words(column.unit || ''))), 0);
  }

  makeHeader(column, index) {
    const arrows = icon('M5 6.5L8 3.5L11 6.5M5 9.5L8 12.5L11 9.5', 'sort'), title = make('span', {class: 'column-title'}, column.title);
    const button = make('button', {type: 'button', title: column.meaning || null, onclick: () => this.sort(index)},
      append(title, [arrows]), column.unit ? make('span', {class: 'unit'}, column.unit) : null);
    if (this.columns[index].marks) button.style.paddingRight = marksRoom(this.columns[index].marks);
    return make('th', {scope: 'col', class: classes(column.number && 'number', column.away && 'away'), 'aria-sort': 'none'}, button);
  }

  makeRow(row, index) {
    const cells = this.columns.map((_, place) => cellOf(row[place] === undefined ? 'n/a' : row[place]));
    const element = make('tr', null, cells.map((cell, place) => this.makeCell(cell, place, index)));
    const runs = cells.length && this.table.runs ? cells[0].r || [] : [];
    if (runs.length) element.id = 'run-' + runs[0];
    return {element: element, cells: cells, index: index, run: runs[0],
      words: cells.map(cell => cell.t).join('\u0001').toLowerCase()};
  }

  makeCell(cell, place, index) {
    const view = this.columns[place];
    const content = cellContent(cell, view.intervalWidth);
    const says = this.table.title + ', ' + view.column.title + ': ' + cell.t;
    const linked = this.table.runs && place === 0 ? content : withEvidence(content, cell.r, says);
    const marks = (cell.n || []).filter(note => note < (this.table.notes || []).length);
    const kind = [view.column.number && 'number', isMissing(cell) && 'missing', view.column.away && 'away', place === this.name && 'name'];
    const node = make('td', {class: classes(...kind), 'data-label': axisTitle(view.column.title, view.column.unit)}, linked,
      place === this.name && (this.table.groups || [])[index] ? make('span', {class: 'row-group'}, this.table.groups[index]) : null,
      marks.length ? make('sup', {class: 'marks'}, marks.map((note, index) => [index ? ',' : '',
        make('a', {href: '#' + this.table.id + '-note-' + noteMark(note), title: this.table.notes[note]}, noteMark(note))])) : null);
    // Marks hang into the padding: digits stay in line.
    if (view.marks) node.style.paddingRight = marksRoom(view.marks);
    return node;
  }

  makeNode() {
    const table = this.table, long = table.rows.length > 15;
    this.count = make('span', {class: 'filter-count', role: 'status'});
    this.filter = long ? make('input', {type: 'search', class: 'filter', placeholder: 'Filter ' + table.rows.length + ' rows',
      'aria-label': 'Filter the rows of ' + table.title, autocomplete: 'off', spellcheck: 'false', oninput: () => this.show()}) : null;
    this.selection = make('div', {class: 'selection', hidden: true});
    const title = make('div', {class: 'block-title', id: table.id + '-title'},
      make('span', {class: 'block-number'}, 'Table ' + ++tableCount), ' ', table.title);
    const tools = make('div', {class: 'tools'}, this.count, this.filter,
      make('button', {type: 'button', class: 'tool', title: 'Save this table as a CSV file', onclick: () => this.save()}, 'CSV'));
    return make('div', {class: 'table-block', id: table.id},
      make('div', {class: 'block-head'}, title, tools),
      table.caption ? make('p', {class: 'caption'}, table.caption) : null,
      this.selection,
      make('div', {class: 'table-scroll' + (table.rows.length > 30 ? ' tall' : ''), tabindex: 0, role: 'region',
        'aria-labelledby': table.id + '-title'},
        make('table', {class: classes(this.width() > 130 && 'wide', this.width() > 90 && 'broad'), 'aria-labelledby': table.id + '-title'}, make('thead', null, make('tr', null, this.headers)), this.body)),
      table.rows.length ? null : make('p', {class: 'caption'}, 'No rows.'),
      makeNotes(table.id, table.notes));
  }

  // Ascending, descending, as it came.
  sort(index) {
    const same = this.sorted.column === index;
    if (same && this.sorted.direction < 0) this.sorted = {column: -1, direction: 1};
    else this.sorted = {column: index, direction: same ? -1 : 1};
    this.headers.forEach((header, place) => header.setAttribute('aria-sort',
      place !== this.sorted.column ? 'none' : this.sorted.direction > 0 ? 'ascending' : 'descending'));
    this.fill();
  }

  order() {
    const {column, direction} = this.sorted;
    if (column < 0) return this.rows;
    return this.rows.slice().sort((a, b) =>
      compareCells(a.cells[column], b.cells[column], this.columns[column].column, direction) || a.index - b.index);
  }

  show() {
    const wanted = this.filter ? this.filter.value.trim().toLowerCase().split(/\s+/) : [];
    let shown = 0;
    for (const row of this.rows) {
      const fits = wanted.every(word => row.words.includes(word)) && (!this.selected || this.selected.has(row.run));
      row.element.classList.toggle('out', !fits);
      shown += fits;
    }
    this.groups.forEach(group => group.element.classList.toggle('out', group.rows.every(row => row.element.classList.contains('out'))));
    this.count.textContent = shown === this.rows.length ? '' : shown + ' of ' + this.rows.length;
  }

  // Shows only the rows of these runs, with a way back to where they were asked for.
  select(runs, says) {
    const y = window.scrollY;
    this.selected = new Set(runs);
    if (this.filter) this.filter.value = '';
    const all = make('button', {type: 'button', class: 'tool', onclick: () => this.unselect()}, 'Show all runs');
    const back = make('button', {type: 'button', class: 'tool', onclick: () => { this.unselect(); window.scrollTo(0, y); }}, 'Back to the text');
    const short = says.length > 90 ? says.slice(0, 88) + '…' : says;
    this.selection.replaceChildren(make('span', null, runs.length === 1 ? 'The run behind “' : 'The ' + runs.length + ' runs behind “', short, '”'), back, all);
    this.selection.hidden = false;
    this.show();
  }

  unselect() {
    this.selected = null;
    this.selection.hidden = true;
    this.show();
  }

  // As the report's own CSV files: numbers in full, nothing for n/a, intervals and notes in columns of their own.
  save() {
    const header = [], notes = this.table.notes || [], order = this.order(), rows = order.map(() => []);
    this.columns.forEach(({column, intervalWidth, marks}, place) => {
      header.push(axisTitle(column.title, column.unit));
      if (intervalWidth) header.push(axisTitle(column.title + ' low', column.unit), axisTitle(column.title + ' high', column.unit));
      order.forEach((row, index) => {
        const cell = row.cells[place];
        rows[index].push(column.number && typeof cell.v === 'number' ? cell.v : cell.t === 'n/a' ? '' : cell.t);
        if (intervalWidth) rows[index].push(cell.l, cell.h);
        if (marks) rows[index].push((cell.n || []).map(note => notes[note]).join('; '));
      });
      if (marks) header.push(column.title + ' notes');
    });
    saveFile(this.table.id + '.csv', 'text/csv;charset=utf-8', csvText([header, ...rows]));
  }
}

function makeTable(table) {
  const view = new TableView(table);
  if (table.runs) runsTable = view;
  return view.node;
}
