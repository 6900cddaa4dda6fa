"""GETs a URL with a library and prints the answer: fetch.py LIBRARY URL. Settings come from the environment alone."""

import asyncio
import sys
import urllib.request


def by_requests(url):
    import requests

    return requests.get(url).text


def by_httpx(url):
    import httpx

    return httpx.get(url).text


def by_aiohttp(url):
    import aiohttp

    async def get():
        async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as answer:
            return await answer.text()

    return asyncio.run(get())


def by_botocore(url):
    import botocore.session

    client = botocore.session.get_session().create_client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="id", aws_secret_access_key="key",
        config=botocore.config.Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}))
    return client.get_object(Bucket="bucket", Key="x")["Body"].read().decode()


def by_openai(url):
    import openai

    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    completion = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
    return completion.choices[0].message.content


def by_websockets(url):
    import websockets

    async def get():
        async with websockets.connect(url.replace("https://", "wss://"), subprotocols=["talk"]) as connection:
            return await connection.recv()

    return asyncio.run(get())


def by_websocket_client(url):
    import websocket

    return websocket.create_connection(url.replace("https://", "wss://"), timeout=20, subprotocols=["talk"]).recv()


def by_urllib(url):
    return urllib.request.urlopen(url).read().decode()


print(globals()[f"by_{sys.argv[1]}"](sys.argv[2]))
