"""An origin that answers no request until a given number have arrived, so that this number of connections is open."""

import asyncio
import ssl
import threading


class WaitingOrigin:
    """Two listeners on loopback, plain and TLS, on a separate thread. A context manager."""

    def __init__(self, directory, ports):
        self.directory = directory
        self.plain_port, self.tls_port = ports
        self.crowd = 1
        """Number of requests that are answered together. The count begins again after each answer."""

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._waiting = []
        self._tasks = set()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.directory / "origin.crt", self.directory / "origin.key")
        for port, context in ((self.plain_port, None), (self.tls_port, tls)):
            server = asyncio.start_server(self._serve, "127.0.0.1", port, ssl=context, backlog=1024)
            self._loop.run_until_complete(server)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join()
        self._loop.run_until_complete(self._last())
        self._loop.close()

    async def _last(self):
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop(self):
        for task in self._tasks:
            task.cancel()
        self._loop.stop()

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                answered = self._loop.create_future()
                self._waiting.append(answered)
                if len(self._waiting) >= self.crowd:
                    for future in self._waiting:
                        future.set_result(None)
                    self._waiting = []
                await answered
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass
        finally:
            writer.close()
            self._tasks.discard(asyncio.current_task())
