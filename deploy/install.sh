# Functions that deploy/run, deploy/test, deploy/release and others share: installing packages, showing progress.

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 1
}

require_swift() {
    command -v swift >/dev/null || fail "Swift 6.2 or later is needed: install it, put it on the PATH, run this again."
}

# install_packages NAME...: Debian packages, with apt-get, as root or through sudo. `COMMAND=NAME`: only where the
# command is missing, whoever brought it.
install_packages() {
    local missing=() entry as_root=()
    for entry in "$@"; do
        case $entry in
        *=*) command -v "${entry%%=*}" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "${entry%%=*}" >/dev/null ||
            missing+=("${entry#*=}") ;;
        *) [ "$(dpkg-query -W -f '${db:Status-Status}' "$entry" 2>/dev/null)" = installed ] || missing+=("$entry") ;;
        esac
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null; then
        say "No apt-get here, so see to it that what Debian calls these is installed: ${missing[*]}"
        return 0
    fi
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "As root, run: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "Installing ${missing[*]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c "$install_as_root" sh "${missing[@]}" </dev/null >&2
}

# Installs the packages named as arguments, and starts none of their services: policy-rc.d says no meanwhile
# (invoke-rc.d(8)). The tests start their own servers, on free ports.
install_as_root='
    set -eu
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap "rm -f $policy" EXIT
        trap "exit 1" INT TERM
        printf "#!/bin/sh\nexit 101\n" >"$policy"
        chmod 755 "$policy"
    fi
    apt-get update -qq || echo "apt-get update failed; trying with the lists that are there."
    apt-get install -y -qq --no-install-recommends "$@"
'

# What a build needs beside Swift itself.
install_build_packages() {
    install_packages libcurl4-openssl-dev libssl-dev libnghttp2-dev libqrencode-dev libyaml-dev libpq-dev ca-certificates git=git g++=g++ pkg-config=pkg-config
}

# Shows the output of `swift build` on standard error. Steps, `[3/40] Compiling X`, share one line of a terminal; elsewhere
# one of them is shown every ten seconds. Other lines, such as errors, are shown as they come.
progress() {
    local line text next=0 start=$SECONDS passed
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*)$ ]]; then
            passed=$((SECONDS - start))
            text="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps, $passed s: ${BASH_REMATCH[3]}"
            if [ -t 2 ]; then
                printf '\r\033[K%.*s' "${COLUMNS:-79}" "$text" >&2
            elif [ "$passed" -ge "$next" ]; then
                printf '%s\n' "$text" >&2
                next=$((passed + 10))
            fi
        elif [ -n "$line" ]; then
            if [ -t 2 ]; then printf '\r\033[K' >&2; fi
            printf '%s\n' "$line" >&2
        fi
    done
    if [ -t 2 ]; then printf '\r\033[K' >&2; fi
}
