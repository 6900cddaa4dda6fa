#!/bin/sh
# Walks the course with curl or wget: course.sh PROGRAM URL. Each step prints one line.
set -eu
program=$1 base=$2

large() { head -c 200000 /dev/zero | tr '\0' c; }

case $program in
curl)
    printf 'get 200 %s\n' "$(curl -sS --fail "$base/items?x=1")"
    printf 'post 200 %s\n' "$(curl -sS --fail --data hello=world "$base/count")"
    printf 'chunked 200 %s\n' "$(large | curl -sS --fail -X POST -T - -H 'Expect: 100-continue' "$base/count")"
    printf 'big 200 %s\n' "$(curl -sS --fail "$base/big" | wc -c)"
    curl -sS --head -o /dev/null -w 'head %{http_code}\n' "$base/items?x=1"
    curl -sS -X DELETE -w 'delete %{http_code}\n' "$base/items?x=1"
    ;;
wget)
    printf 'get 200 %s\n' "$(wget -qO- "$base/items?x=1")"
    printf 'post 200 %s\n' "$(wget -qO- --post-data=hello=world "$base/count")"
    # It can't send a body without its length.
    file=$(mktemp)
    large >"$file"
    printf 'chunked 200 %s\n' "$(wget -qO- --post-file="$file" "$base/count")"
    rm -f "$file"
    printf 'big 200 %s\n' "$(wget -qO- "$base/big" | wc -c)"
    wget -q --spider "$base/items?x=1" && echo head 200
    wget -q --method=DELETE "$base/items?x=1" && echo delete 204
    ;;
esac
