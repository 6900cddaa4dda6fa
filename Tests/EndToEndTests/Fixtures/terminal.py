"""A person at a terminal: runs a command there, types answers, and prints what the terminal shows, as it does.

    terminal.py '[["expected text", "typed text"], …]' COMMAND…

`{state}` in a typed text is the state of the address that was shown. The exit code is the command's; 99 when an expected
text does not come. `TERMINAL_COLUMNS` sets the width.
"""

import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time

dialogue, command = json.loads(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    if columns := os.environ.get("TERMINAL_COLUMNS"):
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(columns), 0, 0))
    os.execvp(command[0], command)
shown = b""
deadline = time.monotonic() + 60
while True:
    if dialogue and dialogue[0][0].encode() in shown:
        # Time itself: a person types later than a prompt appears.
        time.sleep(0.2)
        state = re.search(rb"[?&]state=([^&\s]+)", shown)
        text = dialogue.pop(0)[1].encode().replace(b"{state}", state.group(1) if state else b"")
        while text:
            text = text[os.write(terminal, text[:1024]):]
    readable, _, _ = select.select([terminal], [], [], 0.1)
    if readable:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    elif time.monotonic() > deadline:
        os.kill(pid, 9)
        break
_, status = os.waitpid(pid, 0)
sys.exit(99 if dialogue else os.waitstatus_to_exitcode(status))
