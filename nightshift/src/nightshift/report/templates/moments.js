(() => {
  "use strict";
  const told = JSON.parse(document.getElementById("moments").textContent);
  const svg = document.querySelector("svg.night"), box = svg.parentElement;
  const line = svg.querySelector(".moment"), read = document.getElementById("moment");
  const idle = read.textContent, margin = new Map();
  for (const one of svg.querySelectorAll("[data-line]")) margin.set(one.dataset.line, [one, one.textContent]);
  let x = null;
  const say = (key, words) => { const one = margin.get(key); if (one) one[0].textContent = words ?? one[1]; };
  const nearest = (readings) => readings.reduce((best, one) => Math.abs(one[0] - x) < Math.abs(best[0] - x) ? one : best);
  const number = (value) => value === null ? "unknown" : value.toLocaleString("en");
  const show = (at) => {
    x = Math.max(told.left, Math.min(told.right, at));
    const all = [];
    for (const [lane, readings] of Object.entries(told.lanes)) {
      if (!readings.length) continue;
      const [, time, running, slots, ready] = nearest(readings);
      const works = running === null ? "running unknown" : `${number(running)} of ${number(slots)} slots`;
      say(`${lane}/1`, `${time}: ${works}`);
      say(`${lane}/2`, `${number(ready)} waiting`);
      all.push([time, `${lane} ${works}, ${number(ready)} waiting`]);
    }
    line.setAttribute("transform", `translate(${x} 0)`);
    line.style.visibility = "visible";
    if (all.length) read.textContent = `${all[0][0]}: ${all.map((one) => one[1]).join("; ")}.`;
  };
  const rest = () => {
    x = null; line.style.visibility = ""; read.textContent = idle;
    for (const key of margin.keys()) say(key);
  };
  svg.addEventListener("pointermove", (event) => {
    const frame = svg.getBoundingClientRect();
    const at = (event.clientX - frame.left) / frame.width * told.width;
    if (at < told.left) rest(); else show(at);
  });
  svg.addEventListener("pointerleave", rest);
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -6, ArrowRight: 6 }[event.key];
    if (step) { show((x ?? told.left) + step); event.preventDefault(); }
    if (event.key === "Escape") rest();
  });
})();
