# SPDX-License-Identifier: Apache-2.0
"""A hub for tests, with everything that can go wrong with one: python3 hub.py MODELS LOG

MODELS/OWNER/NAME/... are the files of models. It serves them on two ports, as the hub and as the host that the hub redirects
large files to, and prints both. Every request becomes a line of LOG: host, method, path, Range, Authorization.
The name of a model says what is wrong with it (see `faults` below); the counts of such faults are per path.
"""

import hashlib
import http.server
import json
import os
import re
import sys
import threading
import time

TOKEN = "hf_secretOfTheTest"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
models, log_path = sys.argv[1], sys.argv[2]
lock = threading.Lock()
seen = {}


def count(key):
    with lock:
        seen[key] = seen.get(key, 0) + 1
        return seen[key]


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *args):
        pass

    def note(self):
        with lock, open(log_path, "a") as log:
            log.write(" ".join([self.server.role, self.command, self.path, self.headers.get("Range", "-"),
                                self.headers.get("Authorization", "-")]) + "\n")

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status, code, **headers):
        self.answer(status, b'{"error": "as asked"}', X_Error_Code=code, **headers)

    def files(self, name):
        top = os.path.join(models, name)
        return sorted(os.path.relpath(os.path.join(at, f), top) for at, _, fs in os.walk(top, followlinks=True) for f in fs)

    # Answers of the API and of HEAD that are wrong on purpose; True: answered.
    def faulty(self, name):
        fault = name.split("/")[1]
        if fault == "gated" and self.headers.get("Authorization") != "Bearer " + TOKEN:
            self.fail(401, "GatedRepo")
        elif fault == "refused":
            self.fail(403, "GatedRepo")
        elif fault == "busy" and count(self.path + self.command) < 3:
            self.fail(429, "", Retry_After="0")
        elif fault == "patient":
            self.fail(429, "", Retry_After="4000")
        elif fault == "down" or (fault == "shaky" and count(self.path + self.command) < 3):
            self.fail(503, "")
        elif fault == "circle":
            self.answer(302, Location=self.path)
        elif fault == "file":
            self.answer(302, Location="file:///etc/passwd")
        elif fault == "headers":
            self.send_response(200)
            for i in range(4000):
                self.send_header("X-Header-%d" % i, "x" * 100)
            self.end_headers()
            self.close_connection = True
        elif fault == "silent":
            self.close_connection = True
        else:
            return False
        return True

    def list_model(self, name, revision):
        siblings = [{"rfilename": f} for f in self.files(name)]
        fault = name.split("/")[1]
        bad = {"up": "../../evil", "absolute": "/etc/passwd", "control": "a\u001b[2Jb", "twice": "config.json", "inner": "a/../../b"}
        if fault in bad:
            siblings.append({"rfilename": bad[fault]})
        text = json.dumps({"id": name, "sha": COMMIT, "siblings": siblings}).encode()
        if fault == "broken":
            text = text[:-9]
        elif fault == "nocommit":
            text = json.dumps({"sha": "../../..", "siblings": siblings}).encode()
        if fault == "huge":
            self.endless(b" " * 65536, 1 << 26)
        elif revision == "nowhere":
            self.fail(404, "RevisionNotFound")
        else:
            self.answer(200, text, Content_Type="application/json")

    def endless(self, piece, most):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for _ in range(most // len(piece)):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        except OSError:
            pass
        self.close_connection = True

    def list_tree(self, name):
        rows = []
        for f in self.files(name):
            data = open(os.path.join(models, name, f), "rb").read()
            rows.append({"type": "file", "path": f, "size": len(data), "oid": git_sha1(data)})
            if f.endswith((".safetensors", ".gguf", ".bin")):
                rows[-1]["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 100}
        self.answer(200, json.dumps(rows).encode(), Content_Type="application/json")

    def resolve(self, name, file):
        fault = name.split("/")[1]
        path = os.path.join(models, name, file)
        if not os.path.isfile(path):
            return self.fail(404, "EntryNotFound")
        data = open(path, "rb").read()
        large = file.endswith((".safetensors", ".gguf", ".bin"))
        etag = hashlib.sha256(data).hexdigest() if large else git_sha1(data)
        commit = COMMIT[::-1] if fault == "other" else COMMIT
        if fault == "loose":
            return self.send_file(data, ETag='W/"some-tag-%d"' % len(file), X_Repo_Commit=commit)
        if fault == "sametag":
            return self.send_file(data, ETag='W/"same"', X_Repo_Commit=commit)
        if fault == "badtag":
            etag = "../../../escape"
        size = 1 << 60 if fault == "vast" else len(data)
        if large:
            return self.answer(302, Location="http://localhost:%d/cdn/%s/%s?signature=secret" % (cdn.server_port, name, file),
                               X_Repo_Commit=commit, X_Linked_ETag='"%s"' % etag, X_Linked_Size=size)
        if "/api/resolve-cache/" not in self.path and fault != "plain":
            return self.answer(307, Location="/api/resolve-cache/%s/%s" % (name, file), X_Repo_Commit=commit)
        self.send_file(data, ETag='"%s"' % etag, X_Repo_Commit=commit)

    def send_file(self, data, **headers):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not wanted:
            return self.answer(200, data, **headers)
        first, last = int(wanted[1]), min(int(wanted[2]), len(data) - 1)
        if first > last:
            return self.answer(416, Content_Range="bytes */%d" % len(data))
        self.answer(206, data[first:last + 1], Content_Range="bytes %d-%d/%d" % (first, last, len(data)), **headers)

    # The host of large files: what breaks there, by the name of the model.
    def send_large(self, name, file):
        fault = name.split("/")[1]
        data = open(os.path.join(models, name, file), "rb").read()
        n = count(self.path)
        half = len(data) // 2
        if fault == "breaks" and n < 3:  # the connection ends in the middle
            if n == 2 and self.headers.get("Range") != "bytes=%d-%d" % (half, len(data) - 1):
                return self.answer(400)
            self.send_response(206 if n == 2 else 200)
            if n == 2:
                self.send_header("Content-Range", "bytes %d-%d/%d" % (half, len(data) - 1, len(data)))
            self.send_header("Content-Length", str(len(data) - (half if n == 2 else 0)))
            self.end_headers()
            self.wfile.write(data[half:half + half // 2] if n == 2 else data[:half])
            self.close_connection = True
        elif fault == "anew":  # it begins anew, and breaks off at one place and at a farther one in turn
            self.answer(200, data[:(1 + n % 2 * 2) * len(data) // 4], Content_Length=len(data))
            self.close_connection = True
        elif fault == "norange" and n == 1:
            self.answer(200, data[:half], Content_Length=len(data))
            self.close_connection = True
        elif fault == "norange":
            self.answer(200, data)
        elif fault == "elsewhere" and n == 1:
            self.answer(200, data[:half], Content_Length=len(data))
            self.close_connection = True
        elif fault == "elsewhere":
            self.answer(206, data[half - 7:], Content_Range="bytes %d-%d/%d" % (half - 7, len(data) - 1, len(data)))
        elif fault == "wrong" or (fault == "once" and n == 1):
            self.answer(200, data[:-1] + bytes([data[-1] ^ 1]))
        elif fault == "endless":
            self.endless(data, 100 * len(data))
        elif fault == "short":
            self.answer(200, data[:-5])
        elif fault == "slow":
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[:half])
            self.wfile.flush()
            time.sleep(0.7)
            self.wfile.write(data[half:])
        elif fault == "denied":
            self.fail(403, "")
        else:
            self.send_file(data)

    def do_GET(self):
        self.note()
        path = self.path.split("?")[0]
        if self.server.role == "cdn":
            _, _, owner, name, file = path.split("/", 4)
            return self.send_large(owner + "/" + name, file)
        found = re.fullmatch(r"/api/(models|resolve-cache)/([^/]+/[^/]+)/(revision|tree)?/?(.*)", path)
        if found and found[1] == "resolve-cache":
            return self.resolve(found[2], found[4])
        name, rest = (found[2], "") if found else ("/".join(path.split("/")[1:3]), path.split("/", 5)[5:])
        if not os.path.isdir(os.path.join(models, name)):
            return self.fail(401 if name.startswith("private") else 404, "RepoNotFound")
        if self.faulty(name):
            return None
        if found and found[3] == "tree":
            return self.list_tree(name)
        return self.list_model(name, found[4]) if found else self.resolve(name, rest[0])

    do_HEAD = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, role):
        super().__init__(("127.0.0.1", 0), Handler)
        self.role = role
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


cdn = Server("cdn")
hub = Server("hub")
print(hub.server_port, cdn.server_port, flush=True)
sys.stdin.read()  # until the test ends
