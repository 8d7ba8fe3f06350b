"""What the tests ask of a written HTML document or SVG picture."""

import base64
import hashlib
import re
from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "img", "hr", "input"}
_ACTING = {"script", "iframe", "object", "embed", "link", "base", "form", "img", "template", "foreignobject"}
_SVG_NAMESPACE = "http://www.w3.org/2000/svg"


class Document(HTMLParser):
    """The tags of a page in order, its visible text, and whatever is wrong with it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.faults: list[str] = []
        self.feed(page)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in _ACTING:
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "src", "srcset", "action"):
                self.faults.append(f"{name}={value}")
            if name == "href" and not (value or "").startswith("#"):
                self.faults.append(f"{name}={value}")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        """All that a reader sees, in one line."""
        return " ".join("".join(self.words).split())

    def classes(self) -> set[str]:
        return {name for _, attrs in self.tags for name in (attrs.get("class") or "").split()}


def self_contained(page: str) -> Document:
    """The page parsed, once it is known to be closed, inert, and to load nothing."""
    document = Document(page)
    assert document.faults == []
    assert re.findall(r"url\(|@import|https?:", page.replace(_SVG_NAMESPACE, "")) == []
    policies = [a["content"] or "" for _, a in document.tags if a.get("http-equiv")]
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert len(policies) == 1
    assert "default-src 'none'" in policies[0]
    assert f"style-src 'sha256-{digest}'" in policies[0]
    return document
