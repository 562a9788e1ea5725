"use strict";
(function () {
  // What a picture says where a reader points, at once and on a touch screen too. Without script, the browser shows
  // the same texts, which are titles in the picture.
  const NEAR = 24; // pixels from which a point of a line is meant
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.dir = "ltr";
  tip.hidden = true;
  document.body.append(tip);
  let lit = null;

  function show(mark, x, y) {
    if (lit) { lit.classList.remove("lit"); }
    lit = mark;
    tip.hidden = !mark;
    if (!mark) { return; }
    mark.classList.add("lit");
    tip.textContent = mark.dataset.says;
    const box = tip.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    tip.style.left = Math.max(4, Math.min(x + 12, wide - box.width - 4)) + window.scrollX + "px";
    tip.style.top = (y - box.height - 10 < 0 ? y + 16 : y - box.height - 10) + window.scrollY + "px";
  }

  function nearest(picture, x, y) {
    take(picture);
    const under = document.elementFromPoint(x, y);
    const own = under && under.closest("[data-says]");
    let best = own, least = own ? 4 : NEAR; // a point that lies nearby says more than the line below the pointer
    picture.querySelectorAll("[data-says] use, use[data-says], circle[data-says]").forEach(function (mark) {
      const box = mark.getBoundingClientRect();
      const far = Math.hypot(box.left + box.width / 2 - x, box.top + box.height / 2 - y);
      if (far < least) { best = mark.closest("[data-says]"); least = far; }
    });
    return best;
  }

  function take(picture) { // the browser would show a title a second time
    picture.querySelectorAll("title").forEach(function (title) {
      title.parentNode.dataset.says = title.textContent;
      title.remove();
    });
  }

  document.querySelectorAll(".picture").forEach(function (picture) {
    take(picture);
    const point = function (event) { show(nearest(picture, event.clientX, event.clientY), event.clientX, event.clientY); };
    picture.addEventListener("pointermove", point);
    picture.addEventListener("pointerdown", point);
    picture.addEventListener("pointerleave", function (event) { if (event.pointerType === "mouse") { show(null); } });
  });
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") { show(null); } });
  document.addEventListener("pointerdown", function (event) { if (!event.target.closest(".picture")) { show(null); } });
})();
