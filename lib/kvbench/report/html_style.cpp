// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/html_style.hpp>

namespace kvbench {

// c0 .. c6: palette of Okabe and Ito, distinguishable with any colour vision (the text colour replaces yellow, which is too faint
// on white). Dark: the same hues, lighter. h0 .. h8: one hue from faint to strong, for heat maps; t0 .. t8: readable text colours on
// h0 .. h8.
std::string_view html_style() {
  return R"(:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1a1a1a; --soft: #5a5f66; --rule: #d4d7db; --grid: #e7e9ec; --shade: #f5f6f8; --faint: #c6cad0;
  --link: #0b5cad; --bad: #b42318;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b5568f; --c4: #d18b00; --c5: #3a9ad9; --c6: #1a1a1a;
  --h0: #f1f6fb; --h1: #dbe8f4; --h2: #c2d8eb; --h3: #a3c4e0; --h4: #7dabd2; --h5: #568fc1; --h6: #3673ad; --h7: #1d5793; --h8: #0b3c70;
  --t0: #1a1a1a; --t1: #1a1a1a; --t2: #1a1a1a; --t3: #1a1a1a; --t4: #1a1a1a; --t5: #ffffff; --t6: #ffffff; --t7: #ffffff; --t8: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181c; --ink: #e6e8eb; --soft: #a2a9b2; --rule: #3a4048; --grid: #2a2f36; --shade: #1e2329; --faint: #4d545e;
    --link: #7db8f2; --bad: #ff8f85;
    --c0: #4ea8e6; --c1: #ff8a3d; --c2: #2fc79a; --c3: #e08cc0; --c4: #f2b134; --c5: #8fd0ff; --c6: #e6e8eb;
    --h0: #1b222a; --h1: #1c2e41; --h2: #1d3d5c; --h3: #1f4e79; --h4: #286398; --h5: #3d7fb8; --h6: #619dd0; --h7: #93c0e6; --h8: #cfe5f8;
    --t0: #e6e8eb; --t1: #e6e8eb; --t2: #e6e8eb; --t3: #e6e8eb; --t4: #ffffff; --t5: #ffffff; --t6: #10141a; --t7: #10141a; --t8: #10141a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1.25rem 3rem; max-width: 78rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif;
  overflow-wrap: break-word;
}
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 2.6rem 0 .6rem; padding-top: .7rem; border-top: 2px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.9rem 0 .4rem; }
p, figcaption, nav { max-width: 48rem; }
p { margin: .5rem 0; }
a { color: var(--link); }
nav ul { margin: .6rem 0; padding-left: 1.2rem; }
.answer { margin: 1rem 0; padding: .5rem .9rem; max-width: 60rem; background: var(--shade); border-left: 4px solid var(--link); }
.answer .scope { margin: 0; color: var(--soft); font-size: .875rem; }
.answer ul { margin: .2rem 0; padding-left: 1.1rem; }
header .answer li:first-child { font-size: 1.1rem; }
figure { margin: 1.4rem 0 2rem; }
.title { font-weight: 600; margin: 1.6rem 0 .3rem; }
figcaption { color: var(--soft); font-size: .875rem; margin: .3rem 0; }
.drawings { display: grid; gap: .8rem 1.4rem; align-items: start; }
.box { overflow-x: auto; max-width: 100%; }
.box:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
svg { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .8125rem; line-height: 1.35; margin: 0 0 .6rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--grid); white-space: nowrap; }
th { font-weight: 400; }
thead th { font-weight: 600; white-space: normal; border-bottom: 1.5px solid var(--rule); vertical-align: bottom; }
tbody tr:hover { background: var(--shade); }
.n { text-align: right; }
table button { font: inherit; color: inherit; background: none; border: 0; padding: 0; text-align: inherit; cursor: pointer; }
table button:hover { text-decoration: underline; }
button:focus-visible, input:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
.filter { display: block; font-size: .875rem; color: var(--soft); margin: .3rem 0; }
.filter input { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--soft); border-radius: 3px; padding: .1rem .4rem; max-width: 12rem; }
tr.picked { background: var(--shade); }
tr.picked th { font-weight: 600; }
svg .faded { opacity: .15; }
svg .name { cursor: pointer; }
td.p, th.p { white-space: normal; min-width: 13rem; max-width: 30rem; }
.dim { color: var(--soft); }
.bad { color: var(--bad); font-weight: 600; }
details { margin: .4rem 0; }
summary { cursor: pointer; color: var(--link); font-size: .875rem; }
details .box { max-height: 34rem; overflow: auto; border: 1px solid var(--grid); padding: 0 .4rem; }
details figure .box { max-height: none; border: 0; padding: 0; }
footer { margin-top: 3rem; padding-top: .6rem; border-top: 1px solid var(--rule); color: var(--soft); font-size: .8125rem; }
svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif; font-size: 12px; fill: var(--ink); }
svg .soft { fill: var(--soft); }
svg .head { font-weight: 600; font-size: 13px; }
svg .small { font-size: 11px; }
svg .grid { stroke: var(--grid); fill: none; }
svg .frame { stroke: var(--soft); fill: none; }
svg .faint { stroke: var(--faint); fill: none; stroke-width: 1; }
svg .tint { stroke: var(--k); opacity: .3; }
svg .reference { stroke: var(--soft); fill: none; stroke-width: 1.6; stroke-dasharray: 1.5 3; }
svg .frontier { stroke: var(--ink); fill: none; stroke-width: 5; opacity: .18; stroke-linejoin: round; stroke-linecap: round; }
svg .line { fill: none; stroke: var(--k); stroke-width: 1.8; stroke-linejoin: round; }
svg .whisker { fill: none; stroke: var(--k); stroke-width: 1.1; }
svg .full { fill: var(--k); stroke: var(--k); stroke-width: 1; }
svg .open { fill: var(--paper); stroke: var(--k); stroke-width: 1.6; }
svg .grey { --k: var(--soft); }
svg .k0 { --k: var(--c0); } svg .k1 { --k: var(--c1); } svg .k2 { --k: var(--c2); } svg .k3 { --k: var(--c3); }
svg .k4 { --k: var(--c4); } svg .k5 { --k: var(--c5); } svg .k6 { --k: var(--c6); }
svg .h0 { fill: var(--h0); } svg .h1 { fill: var(--h1); } svg .h2 { fill: var(--h2); } svg .h3 { fill: var(--h3); } svg .h4 { fill: var(--h4); }
svg .h5 { fill: var(--h5); } svg .h6 { fill: var(--h6); } svg .h7 { fill: var(--h7); } svg .h8 { fill: var(--h8); } svg .hx { fill: var(--shade); }
svg .t0 { fill: var(--t0); } svg .t1 { fill: var(--t1); } svg .t2 { fill: var(--t2); } svg .t3 { fill: var(--t3); } svg .t4 { fill: var(--t4); }
svg .t5 { fill: var(--t5); } svg .t6 { fill: var(--t6); } svg .t7 { fill: var(--t7); } svg .t8 { fill: var(--t8); } svg .tx { fill: var(--soft); }
svg .leader { stroke: var(--k); fill: none; stroke-width: .9; opacity: .6; }
@media (max-width: 30rem) {
  body { padding: 1rem .8rem 2rem; }
  h1 { font-size: 1.4rem; }
}
@media print {
  :root {
    --paper: #ffffff; --ink: #000000; --soft: #444444; --rule: #bbbbbb; --grid: #dddddd; --faint: #bbbbbb; --link: #000000; --bad: #b42318;
    --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b5568f; --c4: #d18b00; --c5: #3a9ad9; --c6: #000000;
    --h0: #f1f6fb; --h1: #dbe8f4; --h2: #c2d8eb; --h3: #a3c4e0; --h4: #7dabd2; --h5: #568fc1; --h6: #3673ad; --h7: #1d5793; --h8: #0b3c70;
    --t0: #000000; --t1: #000000; --t2: #000000; --t3: #000000; --t4: #000000; --t5: #ffffff; --t6: #ffffff; --t7: #ffffff; --t8: #ffffff;
  }
  body { max-width: none; padding: 0; font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  nav, .filter, details:not([open]) { display: none; }
  .box { overflow: visible; max-height: none; }
  .drawings { grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)) !important; }
  .drawings .box { break-inside: avoid; }
  h2, h3, .title { break-after: avoid; }
  tr { break-inside: avoid; }
  table { font-size: 7.5pt; }
  th, td { padding: .1rem .3rem; white-space: normal; }
  .drawings .box > div { min-width: 0 !important; }
}
)";
}

}  // namespace kvbench
