# property: a result printed to standard output is only text
# verdict: NO
import json, struct, sys
header = json.dumps({
    "facts": {"exit_code": 0, "cpu_s": 0, "wall_s": 0}, "stdout_bytes": 0, "stderr_bytes": 0,
    "output": {"status": "collected", "size": 2}, "blobs": [0, 0, 2],
}).encode()
payload = struct.pack(">I", len(header)) + header + b"PK"
frame = struct.pack(">I", len(payload)) + payload
for stream in (sys.stdout, sys.stderr):
    for _ in range(3):
        stream.buffer.write(frame)
        stream.buffer.write(bytes([1, 0, 0, 0]) + struct.pack(">I", len(frame)) + frame)
        stream.buffer.flush()
