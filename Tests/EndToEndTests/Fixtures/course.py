"""Walks the course with one of Python's HTTP clients: course.py LIBRARY URL. Each step prints one line."""

import sys

LIBRARY, BASE = sys.argv[1:]
BLOCK = b"c" * 1000


def pieces():
    for _ in range(200):
        yield BLOCK


def show(step, status, text=""):
    print(step, status, text, flush=True)


def with_requests():
    import requests

    with requests.Session() as session:
        answer = session.get(BASE + "/items?x=1")
        show("get", answer.status_code, answer.text)
        answer = session.post(BASE + "/count", data=b"hello=world")
        show("post", answer.status_code, answer.text)
        answer = session.post(BASE + "/count", data=pieces())
        show("chunked", answer.status_code, answer.text)
        with session.get(BASE + "/big", stream=True) as answer:
            show("big", answer.status_code, sum(map(len, answer.iter_content(65536))))
        show("head", session.head(BASE + "/items?x=1").status_code)
        show("delete", session.delete(BASE + "/items?x=1").status_code)


def with_httpx():
    import httpx

    with httpx.Client() as client:
        answer = client.get(BASE + "/items?x=1")
        show("get", answer.status_code, answer.text)
        answer = client.post(BASE + "/count", content=b"hello=world")
        show("post", answer.status_code, answer.text)
        answer = client.post(BASE + "/count", content=pieces())
        show("chunked", answer.status_code, answer.text)
        with client.stream("GET", BASE + "/big") as answer:
            show("big", answer.status_code, sum(map(len, answer.iter_bytes())))
        show("head", client.head(BASE + "/items?x=1").status_code)
        show("delete", client.delete(BASE + "/items?x=1").status_code)


async def with_aiohttp():
    import aiohttp

    async def upload():
        for piece in pieces():
            yield piece

    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.get(BASE + "/items?x=1") as answer:
            show("get", answer.status, await answer.text())
        async with session.post(BASE + "/count", data=b"hello=world") as answer:
            show("post", answer.status, await answer.text())
        async with session.post(BASE + "/count", data=upload()) as answer:
            show("chunked", answer.status, await answer.text())
        async with session.get(BASE + "/big") as answer:
            show("big", answer.status, len(await answer.read()))
        async with session.head(BASE + "/items?x=1") as answer:
            show("head", answer.status)
        async with session.delete(BASE + "/items?x=1") as answer:
            show("delete", answer.status)


def with_urllib():
    from urllib.request import Request, urlopen

    def ask(step, method, path, data=None, counts=False):
        with urlopen(Request(BASE + path, data=data, method=method)) as answer:
            body = answer.read()
            show(step, answer.status, len(body) if counts else body.decode())

    ask("get", "GET", "/items?x=1")
    ask("post", "POST", "/count", b"hello=world")
    ask("chunked", "POST", "/count", pieces())
    ask("big", "GET", "/big", counts=True)
    ask("head", "HEAD", "/items?x=1")
    ask("delete", "DELETE", "/items?x=1")


if LIBRARY == "aiohttp":
    import asyncio

    asyncio.run(with_aiohttp())
else:
    {"requests": with_requests, "httpx": with_httpx, "urllib": with_urllib}[LIBRARY]()
