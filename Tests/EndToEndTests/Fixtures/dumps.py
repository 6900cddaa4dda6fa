"""Kills a program with a signal that leaves a core file (SIGXCPU, which no runtime handles), and prints the readable parts of its memory, as JSON.

    dumps.py USER PROGRAM ARGUMENT…

The program runs as USER, without a limit on core files. It has begun when a line with `listening` comes from it. `read`:
whether another process of that user can read its memory. `core`: whether the kernel has dumped it.
"""

import json
import os
import resource
import signal
import subprocess
import sys

user = ["setpriv", f"--reuid={sys.argv[1]}", f"--regid={sys.argv[1]}", "--clear-groups"]
READER = """
import sys
with open(f"/proc/{sys.argv[1]}/maps") as maps, open(f"/proc/{sys.argv[1]}/mem", "rb", 0) as memory:
    memory.seek(int(maps.readline().split("-")[0], 16))
    sys.exit(not memory.read(16))
"""

resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
program = subprocess.Popen(user + sys.argv[2:], stderr=subprocess.PIPE, text=True)
for line in program.stderr:
    if "listening" in line:
        break
reader = subprocess.run(user + [sys.executable, "-c", READER, str(program.pid)], capture_output=True)
program.send_signal(signal.SIGXCPU)
_, status = os.waitpid(program.pid, 0)
assert os.WTERMSIG(status) == signal.SIGXCPU, status
print(json.dumps({"read": reader.returncode == 0, "core": os.WCOREDUMP(status)}))
