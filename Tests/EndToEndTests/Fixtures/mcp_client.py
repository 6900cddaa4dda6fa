"""The unmodified client of the mcp package, without authorization: lists the tools and calls one.

    mcp_client.py URL CITY
"""

import asyncio
import sys

from mcp import Client


async def main():
    async with Client(sys.argv[1]) as client:
        tools = await client.list_tools()
        print("tools", *(tool.name for tool in tools.tools))
        result = await client.call_tool("get_weather", {"city": sys.argv[2]})
        print(result.content[0].text)


asyncio.run(main())
