"""Forwards connections, for a server that listens only on the loopback interface.

  forward.py ADDRESS PORT TARGET-PORT

listens at the address, and connects to the target port.
"""

from __future__ import annotations

import asyncio
import sys


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def main(address: str, port: int, target: int) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream = await asyncio.open_connection("127.0.0.1", target)
        except ConnectionError:
            writer.close()
            return
        await asyncio.gather(copy(reader, upstream[1]), copy(upstream[0], writer))

    server = await asyncio.start_server(forward, address, port)
    await server.serve_forever()


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
