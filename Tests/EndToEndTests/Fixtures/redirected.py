"""Follows a redirect as one library does: redirected.py requests|webdavclient3 BASE"""

import sys

library, base = sys.argv[1:]
if library == "requests":
    import requests

    with requests.Session() as session:
        print(session.get(base + "/start", timeout=20).text)
else:
    from webdav3.client import Client

    client = Client({"webdav_hostname": base, "webdav_timeout": 20})
    client.move(remote_path_from="a.txt", remote_path_to="b.txt")
    print("moved")
