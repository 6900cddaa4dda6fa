import Foundation
import TestSupport
import Testing

/// A program that knows proxies with users, and how it is told of one.
struct ProxyUserProgram: Sendable, CustomTestStringConvertible {
    var name: String
    /// Arguments and environment for a GET through the proxy as that user.
    var command:
        @Sendable (_ port: UInt16, _ user: String, _ password: String) throws -> (
            [String], [String: String?]
        )
    var testDescription: String { name }

    /// Takes `http://NAME:PASSWORD@HOST:PORT` from the environment.
    static func byEnvironment(_ name: String, _ arguments: @escaping @Sendable () throws -> [String])
        -> ProxyUserProgram
    {
        ProxyUserProgram(name: name) { port, user, password in
            let url = "http://\(escaped(user)):\(escaped(password))@127.0.0.1:\(port)"
            return (try arguments(), ["http_proxy": url])
        }
    }

    private static func escaped(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    static let all = [
        ProxyUserProgram(name: "curl --proxy-user") { port, user, password in
            (
                [
                    "curl", "-sS", "--fail", "-x", "http://127.0.0.1:\(port)", "--proxy-user", "\(user):\(password)",
                    "http://api.test/x",
                ], [:]
            )
        },
        ProxyUserProgram(name: "curl --proxy-anyauth") { port, user, password in
            (
                [
                    "curl", "-sS", "--fail", "-x", "http://127.0.0.1:\(port)", "--proxy-anyauth", "--proxy-user",
                    "\(user):\(password)", "http://api.test/x",
                ], [:]
            )
        },
        .byEnvironment("curl") { ["curl", "-sS", "--fail", "http://api.test/x"] },
        ProxyUserProgram(name: "wget") { port, user, password in
            (
                [
                    "wget", "-qO-", "--tries=1", "-e", "http_proxy=http://127.0.0.1:\(port)", "--proxy-user=\(user)",
                    "--proxy-password=\(password)", "http://api.test/x",
                ], [:]
            )
        },
        .byEnvironment("requests") {
            [
                try Repository.python(), "-c",
                "import requests; r = requests.get('http://api.test/x'); r.raise_for_status(); print(r.text)",
            ]
        },
        .byEnvironment("httpx") {
            [
                try Repository.python(), "-c",
                "import httpx; r = httpx.get('http://api.test/x'); r.raise_for_status(); print(r.text)",
            ]
        },
        .byEnvironment("urllib") {
            [
                try Repository.python(), "-c",
                "import urllib.request; print(urllib.request.urlopen('http://api.test/x').read().decode())",
            ]
        },
        // Says what the answer was; there is no repository.
        .byEnvironment("git") { ["git", "ls-remote", "http://api.test/x"] },
    ]
}
