"""One HTML file that fetches nothing: the frame and the looks of all pages, light and dark."""

from __future__ import annotations

import re
from html import escape

from torchlint.report.text import visible

_STYLE = """\
:root{color-scheme:light dark;--ink:#1f2933;--soft:#5f6b7a;--line:#dde2e9;--page:#f6f7f9;--card:#fff;--good:#0b7a53;
--bad:#b93815;--warn:#8a5a00;--goodbg:#e4f4ed;--badbg:#fbe9e2;--flatbg:#eceff3;--warnbg:#fff4d6}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa6b6;--line:#303947;--page:#12161d;--card:#1a2029;
--good:#4ade9f;--bad:#ff8a65;--warn:#f5c451;--goodbg:#12362a;--badbg:#43231a;--flatbg:#29313d;--warnbg:#3a2f12}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:32px 20px 64px}h1{font-size:26px;line-height:1.25;margin:0 0 8px}
h2{font-size:18px;margin:40px 0 12px}h3{font-size:15px;margin:0}p{margin:6px 0}.soft{color:var(--soft)}
h3,p,code{overflow-wrap:anywhere}code,pre,.mono{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;margin:12px 0}
.chip{display:inline-block;border-radius:12px;padding:1px 10px;white-space:nowrap;font-size:13px;font-weight:600;
background:var(--flatbg);color:var(--ink)}ul{list-style:none;margin:0;padding:0}
.warning{background:var(--warnbg);border-left:4px solid var(--warn);border-radius:6px;padding:10px 14px;margin:12px 0}
@media print{body{background:#fff}.card{break-inside:avoid}}
"""


def html(title: str, style: str, body: str) -> str:
    """The whole file, well-formed as XML too. `title` and `body` are HTML, `style` is for this page alone."""
    return (
        '<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>"
        f"<title>{title}</title>\n<style>\n{_STYLE}{style}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def prose(words: str) -> str:
    """Words with code between backticks, and an arrow for `->`."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", text(words)).replace(" -&gt; ", " → ")


def text(words: str) -> str:
    """`words` that are neither markup nor anything that steers what shows them."""
    return escape(visible(words))
