"""What a program does is told to a collector of traces, also when it ends at once."""

import http.server
import subprocess
import sys
import threading

PROGRAM = """
import cairn_fs, sys
client = cairn_fs.Client(sys.argv[1], options={"cairn.trace.endpoint": sys.argv[2]})
assert client.info("/") is not None
"""


def test_a_program_that_ends_sends_its_spans(uri):
    bodies = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        subprocess.run([sys.executable, "-c", PROGRAM, uri, endpoint], check=True, timeout=60)
        server.shutdown()
    assert any(b"cairn-python" in body for body in bodies), bodies
