"""Puts an object with botocore, signed, through a proxy: signed_put.py ENDPOINT PROXY. Prints the answer's status."""

import sys

import botocore.config
import botocore.session

ENDPOINT, PROXY = sys.argv[1:]
client = botocore.session.Session().create_client(
    "s3", region_name="us-east-1", endpoint_url=ENDPOINT, aws_access_key_id="AKIDTEST",
    aws_secret_access_key="signing-secret", config=botocore.config.Config(
        proxies={"http": PROXY}, retries={"max_attempts": 0}, s3={"addressing_style": "path"}))
for key, body in [("plain.txt", b"hello"), ("a b/ü+~&=?.bin", bytes(range(256)) * 4000)]:
    answer = client.put_object(
        Bucket="bucket", Key=key, Body=body, ContentType="application/x-test", Metadata={"note": "two  spaces, a comma"})
    print("put", answer["ResponseMetadata"]["HTTPStatusCode"])
answer = client.list_objects_v2(Bucket="bucket", Prefix="a b/", Delimiter="/")
print("list", answer["ResponseMetadata"]["HTTPStatusCode"])
