import Configuration
import Testing

@Suite("A value of the section proxy that does not fit is refused with its place and what to write instead")
struct BadProxyValueTests {
    /// The key stands in line 2, column 3; short values from column 5 + its length on.
    static let proxy: KeyValuePairs<String, String> = [
        "threads: two": "2:12: proxy.threads: write a whole number from 1 to 256, not \"two\"",
        "threads: 0": "2:12: proxy.threads: write a whole number from 1 to 256, not \"0\"",
        "threads: -1": "2:12: proxy.threads: write a whole number from 1 to 256, not \"-1\"",
        "threads: 99999999999999999999":
            "2:12: proxy.threads: write a whole number from 1 to 256, not \"99999999999999999999\"",
        "threads: [1]": "2:12: proxy.threads: write a single value, not a list",
        "open: yes": "2:9: proxy.open: write true or false, not \"yes\"",
        "open: {}": "2:9: proxy.open: write a single value, not a mapping",
        "unmatched: froward": "2:14: proxy.unmatched: write forward, not \"froward\"",
        "unmatched: allow": "2:14: proxy.unmatched: write one of reject, forward, not \"allow\"",
        "connect: tunnel":
            "2:12: proxy.connect: tunnels need targets: list HOST:PORT pairs under `tunnels`, or \"*\" for any",
        "connect: open": "2:12: proxy.connect: write one of reject, tunnel, not \"open\"",
        "tunnels: [x.test]":
            "2:13: proxy.tunnels: write HOST:PORT such as github.com:443, or \"*\" for any, not \"x.test\"",
        "tunnels: [\"*.test:443\"]":
            "2:13: proxy.tunnels: write HOST:PORT such as github.com:443, or \"*\" for any, not \"*.test:443\"",
        "tunnels: [\"https://x.test:443\"]":
            "2:13: proxy.tunnels: write HOST:PORT such as github.com:443, or \"*\" for any, not \"https://x.test:443\"",
        "tunnels: [x.test:443, X.test.:443]": "2:25: proxy.tunnels: this value is repeated",
        "header_timeout: 30": "2:19: proxy.header_timeout: write a duration such as 500ms, 30s, 5m or 1h, not \"30\"",
        "header_timeout: 1d": "2:19: proxy.header_timeout: write a duration such as 500ms, 30s, 5m or 1h, not \"1d\"",
        "header_timeout: off":
            "2:19: proxy.header_timeout: write a duration such as 500ms, 30s, 5m or 1h, not \"off\"",
        "header_timeout: 0s": "2:19: proxy.header_timeout: write a duration from 1ms to 24h, not \"0s\"",
        "max_header_bytes: 64KB": "2:21: proxy.max_header_bytes: write a size such as 64KiB or 1MiB, not \"64KB\"",
        "max_header_bytes: 10": "2:21: proxy.max_header_bytes: write a size from 1KiB to 16MiB, not \"10\"",
        "max_body_bytes: none":
            "2:19: proxy.max_body_bytes: write a size such as 64KiB or 1MiB, or off, not \"none\"",
        "max_connections: 0": "2:20: proxy.max_connections: write a whole number from 1 to 1000000, not \"0\"",
        "header_timeot: 1s": "2:3: unknown key \"header_timeot\" in proxy; did you mean \"header_timeout\"?",
        "header-timeout: 1s": "2:3: unknown key \"header-timeout\" in proxy; did you mean \"header_timeout\"?",
        "listen: 8080": "2:11: proxy.listen: write host:port, such as 127.0.0.1:8080 or [::1]:8080, not \"8080\"",
        "listen: :8080":
            "2:11: proxy.listen: write 127.0.0.1:8080 for this machine only, or 0.0.0.0:8080 for every address, not \":8080\"",
        "listen: 127.0.0.1:99999":
            "2:11: proxy.listen: write a port from 0 to 65535, not \"127.0.0.1:99999\"",
        "listen: ::1:8080":
            "2:11: proxy.listen: write host:port, such as 127.0.0.1:8080 or [::1]:8080, not \"::1:8080\"",
        "listen: \"127.0.0.1::8080\"":
            "2:11: proxy.listen: write host:port, such as 127.0.0.1:8080 or [::1]:8080, not \"127.0.0.1::8080\"",
        "listen: []": "2:11: proxy.listen: write at least one address, such as 127.0.0.1:8080",
        "listen: [localhost:1, ~]": "2:25: proxy.listen: write a single value, not nothing",
        "listen: unix:run/h.sock":
            "2:11: proxy.listen: write unix: and an absolute path, not \"unix:run/h.sock\"",
        "listen: {unix: /run/h.sock, mode: \"0888\"}":
            "2:37: proxy.listen.mode: write permissions in octal such as \"0600\", \"0660\" or \"0666\", not \"0888\"",
        "listen: [{unix: /run/h.sock, moed: \"0660\"}]":
            "2:32: unknown key \"moed\" in proxy.listen; did you mean \"mode\"?",
        "listen: [unix:/run/h.sock, {unix: /run/h.sock}]": "2:30: proxy.listen: this value is repeated",
        "listen: {mode: \"0660\"}":
            "2:11: proxy.listen: write host:port, {unix: PATH, mode: \"0660\"}, or {address: HOST:PORT, tls: …}",
        "listen: 0.0.0.0:8080":
            "2:11: proxy.listen: 0.0.0.0:8080 is not loopback, so other machines could use the tokens: listen on 127.0.0.1, set `users` under `proxy`, or write `open: true` there if that is meant",
        "listen: [\"[::1]:80\", \"[0::1]:80\"]": "2:24: proxy.listen: this value is repeated",
        "listen: [127.0.0.1:80, localhost:80]":
            "2:26: proxy.listen: localhost:80 is taken by 127.0.0.1:80 in line 2: write another port",
        "private_networks: 10.0.0.0":
            "2:21: proxy.private_networks: write an address block such as 10.0.0.0/8 or fd00::/8, not \"10.0.0.0\"",
        "private_networks: [10.0.0.0/33]":
            "2:22: proxy.private_networks: write a prefix length from 0 to 32, not \"10.0.0.0/33\"",
        "private_networks: [fd00::/129]":
            "2:22: proxy.private_networks: write a prefix length from 0 to 128, not \"fd00::/129\"",
        "drain_timeout: ${NOPE}":
            "2:18: proxy.drain_timeout: the environment variable NOPE is not set: set it, or write $${ for a literal ${",
        "drain_timeout: ${no pe}":
            "2:18: proxy.drain_timeout: write ${NAME} for an environment variable, or $${ for a literal ${, not \"${no pe}\"",
    ]

    @Test("a bad value of the section proxy is refused with its place and the remedy", arguments: proxy)
    func proxySettings(_ line: String, _ message: String) {
        #expect(problems("proxy:\n  \(line)") == ["c.yaml:" + message])
    }
}
