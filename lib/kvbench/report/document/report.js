/* Adds to a page that is complete without it: headers that sort, a filter, and methods that can be picked out in all figures.
   Elements with data-m belong to the method of that name; data-v is the value by which a cell is sorted. Cells without a value
   stay last in both directions. */
'use strict';
const picked = new Set();
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

function show() {
  for (const part of all('[data-m]')) {
    const own = picked.has(part.dataset.m);
    part.classList.toggle('picked', own);
    part.classList.toggle('faded', picked.size > 0 && !own);
  }
  for (const button of all('button.pick')) button.setAttribute('aria-pressed', picked.has(button.closest('[data-m]').dataset.m));
}

function pick(name) {
  if (!picked.delete(name)) picked.add(name);
  show();
}

function sort(table, column, direction) {
  const numeric = table.tHead.rows[0].cells[column].classList.contains('n');
  const value = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
  const number = row => parseFloat(value(row));
  const without = row => numeric ? isNaN(number(row)) : value(row) === '';
  const body = table.tBodies[0], rows = [...body.rows], filled = rows.filter(row => !without(row));
  filled.sort((a, b) => direction * (numeric ? number(a) - number(b) : value(a).localeCompare(value(b))));
  body.append(...filled, ...rows.filter(without));
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const up = head.getAttribute('aria-sort') !== 'ascending';
      for (const other of heads) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      sort(table, column, up ? 1 : -1);
    });
  });
}

function filterable(table) {
  const label = document.createElement('label'), input = document.createElement('input');
  input.type = 'search';
  label.className = 'filter';
  label.append('Show rows with ', input);
  table.closest('.box').before(label);
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
  });
}

function pickable(row) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'pick';
  button.title = 'Pick out in all figures';
  button.append(...row.cells[0].childNodes);
  row.cells[0].append(button);
  button.addEventListener('click', () => pick(row.dataset.m));
}

for (const table of all('table.sortable')) {
  sortable(table);
  filterable(table);
}
all('tr[data-m]').forEach(pickable);
for (const part of all('svg [data-m]')) part.addEventListener('click', () => pick(part.dataset.m));
show();
