# Sourced by deploy/run and deploy/test: installs what is missing, by name, and nothing that is there.

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
    "${as_root[@]}" apt-get update -qq </dev/null >&2 || say "apt-get update failed; trying with the lists that are there."
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
        </dev/null >&2
}

# What a build needs beside Swift itself.
install_build_packages() {
    install_packages libcurl4-openssl-dev libssl-dev libqrencode-dev libyaml-dev libpq-dev ca-certificates git=git g++=g++ pkg-config=pkg-config
}
