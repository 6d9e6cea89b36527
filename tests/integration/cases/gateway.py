"""A filing gateway that takes a filing into its books, and dies before it says so."""

from __future__ import annotations

import json
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event
from typing import Any


class Gateway(ThreadingHTTPServer):
    """Files what is submitted; breaks the connection, or hangs, instead of saying so the first time of each run."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Desk)
        self.books: list[tuple[str, str]] = []
        self.calls: Counter[str] = Counter()
        self.hangs = Event()
        self.ends = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def filings(self, run: str) -> list[str]:
        return [filing for filed, filing in self.books if filed == run]


class Desk(BaseHTTPRequestHandler):
    server: Gateway

    def do_GET(self) -> None:
        _, act, run = self.path.split("/")
        books = self.server
        books.calls[self.path] += 1
        if act == "submit":
            books.books.append((run, f"filing-{len(books.books)}"))
            if books.calls[self.path] == 1:
                if books.hangs.is_set():
                    books.ends.wait(60)
                self.close_connection = True
                return
        self.send_response(200)
        self.end_headers()
        found = books.filings(run)
        self.wfile.write(json.dumps({"filing": found[0] if found else None}).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
