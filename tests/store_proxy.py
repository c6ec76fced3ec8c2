"""A proxy of ours between one node and its store: it keeps bytes back, delays them, and cuts answers in the middle."""

import asyncio
import ssl
import threading

REQUESTS, REPLIES = "requests", "replies"
BOTH = (REQUESTS, REPLIES)


class StoreProxy:
    """Forwards a free port to 127.0.0.1:`port`. With `certificates` its own side speaks TLS, and `names` is what
    clients asked for by SNI.

        proxy = StoreProxy(server.port)
        proxy.partition()           # Nothing passes; proxy.partition(REPLIES): questions pass, answers do not.
        proxy.heal()                # What was kept back arrives, as TCP sends again what a network has lost ...
        proxy.heal(lost=True)       # ... or is gone, and the connections with it.
        proxy.delay(0.1)            # Every answer comes so much later.
        proxy.cut_reply(after=9)    # The next answer ends after so many bytes, and its connection with it.

    `connections` are open now, `accepted` ever, `cuts` were made. Any thread may ask.
    """

    def __init__(self, port, certificates=None):
        self._target = port
        self._tls = certificates and self._tls_context(certificates)
        self.names = []
        self.connections = self.accepted = self.cuts = 0
        self._delay_s = 0.0
        self._cut_after = None
        self._links = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._run(self._listen())
        self.url = f"{'rediss' if certificates else 'redis'}://127.0.0.1:{self.port}/0"

    def partition(self, *directions):
        self._run(self._set_gates(directions or BOTH, is_open=False))

    def heal(self, lost=False):
        if lost:
            self._run(self._break_links())
        self._run(self._set_gates(BOTH, is_open=True))

    def delay(self, seconds):
        self._delay_s = seconds

    def cut_reply(self, after):
        self._cut_after = after

    def close(self):
        if not self._thread.is_alive():
            return
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # --- On the proxy's thread.

    def _run(self, step):
        return asyncio.run_coroutine_threadsafe(step, self._loop).result(30)

    def _tls_context(self, certificates):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.cert, certificates.key)
        context.sni_callback = lambda _connection, name, _context: self.names.append(name)
        return context

    async def _listen(self):
        self._gates = {direction: asyncio.Event() for direction in BOTH}
        await self._set_gates(BOTH, is_open=True)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        return self._server.sockets[0].getsockname()[1]

    async def _set_gates(self, directions, is_open):
        for direction in directions:
            (self._gates[direction].set if is_open else self._gates[direction].clear)()

    async def _end(self):
        self._server.close()
        await asyncio.sleep(0)  # Connections that have just been accepted become links.
        await self._break_links()

    async def _break_links(self):
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _serve(self, client_reader, client_writer):
        self.accepted += 1
        self.connections += 1
        link = asyncio.current_task()
        self._links.add(link)
        writers = [client_writer]
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(server_writer)
            async with asyncio.TaskGroup() as tasks:  # The first that ends ends the others.
                self._pump(tasks, client_reader, server_writer, REQUESTS)
                self._pump(tasks, server_reader, client_writer, REPLIES)
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            for writer in writers:
                writer.transport.abort()
            self._links.discard(link)
            self.connections -= 1

    def _pump(self, tasks, reader, writer, direction):
        """Bytes one way, each after its delay; the end comes behind what was kept back."""
        arrived = asyncio.Queue()

        async def collect():
            data = b"?"
            while data:
                try:
                    data = await reader.read(65536)
                except OSError:
                    data = b""
                delay_s = self._delay_s if direction == REPLIES else 0
                arrived.put_nowait((self._loop.time() + delay_s, data))

        async def deliver():
            while True:
                due, data = await arrived.get()
                await asyncio.sleep(max(0, due - self._loop.time()))
                await self._gates[direction].wait()
                cut = direction == REPLIES and data and self._cut_after is not None
                if cut:
                    data, self._cut_after = data[: self._cut_after], None
                    self.cuts += 1
                writer.write(data)
                await writer.drain()
                if cut or not data:
                    raise ConnectionResetError

        tasks.create_task(collect())
        tasks.create_task(deliver())
