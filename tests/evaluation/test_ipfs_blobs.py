"""Snapshots on an IPFS node: its HTTP API, over a real connection."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from assay.common.errors import Unavailable
from assay.common.keyring import SecretBox
from assay.evaluation.blobs import IpfsSnapshotBlobs, cid_v1_raw

BOX = SecretBox.from_secrets("s" * 40)


class Node:
    """`/api/v0/block/put` as Kubo answers it; `lies` makes it name another block."""

    def __init__(self) -> None:
        self.blocks: dict[str, bytes] = {}
        self.paths: list[str] = []
        self.status, self.lies = 200, False
        node = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                boundary = re.search(r"boundary=(\S+)", self.headers["content-type"])
                assert boundary
                part = body.split(b"--" + boundary[1].encode())[1]
                block = part.partition(b"\r\n\r\n")[2][:-2]
                node.paths.append(self.path)
                cid = cid_v1_raw(b"another" if node.lies else block)
                node.blocks[cid] = block
                answer = json.dumps({"Key": cid, "Size": len(block)}).encode()
                self.send_response(node.status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def node() -> Iterator[Node]:
    running = Node()
    thread = threading.Thread(target=running.server.serve_forever, args=(0.02,))
    thread.start()
    yield running
    running.server.shutdown()
    thread.join()
    running.server.server_close()


async def test_a_block_is_put_encrypted_and_named_by_its_content(node: Node) -> None:
    blobs = IpfsSnapshotBlobs(node.url, BOX)
    uri = await blobs.store(b'{"evidence": "plain"}')
    ((cid, block),) = node.blocks.items()
    assert uri == f"ipfs://{cid}"
    assert b"plain" not in block
    assert BOX.open(block, b"assay.snapshot") == b'{"evidence": "plain"}'
    assert node.paths == ["/api/v0/block/put?cid-codec=raw&mhtype=sha2-256&pin=true"]
    await blobs.aclose()


@pytest.mark.parametrize("fault", ["status", "lies", "gone"])
async def test_a_node_that_fails_or_lies_is_unavailable(node: Node, fault: str) -> None:
    node.status = 500 if fault == "status" else 200
    node.lies = fault == "lies"
    blobs = IpfsSnapshotBlobs("http://127.0.0.1:9" if fault == "gone" else node.url, BOX)
    with pytest.raises(Unavailable):
        await blobs.store(b"data")
    await blobs.aclose()
