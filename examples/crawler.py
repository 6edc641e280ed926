"""A crawler: workers fetch pages, the controller keeps what is known. The web is served here."""

from __future__ import annotations

import re
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from monarch.actor import Actor, endpoint, this_host

WEB = {
    "/": ["/news", "/about"],
    "/news": ["/news/1", "/news/2", "/"],
    "/news/1": ["/news/2", "/gone"],
    "/news/2": ["/about"],
    "/about": ["/"],
}


class Web(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        links = WEB.get(self.path)
        if links is None:
            self.send_error(404)
            return
        body = "".join(f'<a href="{link}">x</a>' for link in links).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Crawler(Actor):
    def __init__(self, site: str) -> None:
        self.site = site

    @endpoint
    def links(self, path: str) -> list[str]:
        with urllib.request.urlopen(self.site + path, timeout=10) as page:  # noqa: S310 - our own
            return re.findall(r'href="([^"]+)"', page.read().decode())


def main() -> None:
    web = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    procs = this_host().spawn_procs(per_host={"workers": 3})
    crawlers = procs.spawn("crawlers", Crawler, f"http://127.0.0.1:{web.server_port}")

    found, broken, frontier = {"/"}, [], ["/"]
    while frontier:
        tasks = [
            (path, crawlers.slice(workers=at % 3).links.call_one(path))
            for at, path in enumerate(frontier)
        ]
        frontier = []
        for path, task in tasks:
            error = task.exception(timeout=30)
            if error is not None:  # one page fails; its crawler and all others go on
                broken.append(path)
                continue
            for link in task.get():
                if link not in found:
                    found.add(link)
                    frontier.append(link)
    print("pages:", *sorted(found - set(broken)))
    print("broken:", *broken)


if __name__ == "__main__":
    main()
