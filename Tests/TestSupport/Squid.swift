import Foundation

/// Squid on a free loopback port of the host `localhost`, which requires a login by one method.
public final class Squid: Sendable {
    public enum Method: Sendable {
        case basic, digest
        /// Squid's own helper that accepts any password.
        case ntlm
        /// Value: the keytab of `HTTP/localhost`.
        case negotiate(keytab: String)
    }

    public let port: UInt16
    private let child: ChildProcess
    private let directory: TemporaryDirectory

    /// The user for `basic` and `digest` is `ann`, with the password `pw-of-ann`.
    public init(_ method: Method, environment: [String: String?] = [:]) async throws {
        var lastFailure: any Error = TestFailure("Squid was not tried")
        // A port that was free a moment ago may be taken by the time Squid binds it.
        for _ in 0..<5 {
            do {
                let directory = try TemporaryDirectory()
                // As root, Squid serves as another user.
                try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: directory.path)
                let port = try freePort()
                let login = try await Self.login(method, directory)
                let file = try directory.write(Self.configuration(directory.path, port, login), to: "squid.conf")
                let child = try ChildProcess(
                    ["squid", "-N", "-f", file],
                    environment: environment.merging(["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]) { $1 },
                    directory: directory.path)
                try await Nginx.waitUntilUp(child, ports: [port])
                (self.port, self.child, self.directory) = (port, child, directory)
                return
            } catch { lastFailure = error }
        }
        throw lastFailure
    }

    deinit { child.kill() }

    /// Finished requests, each as `USER METHOD STATUS`. `-` stands for no user.
    public func requests() throws -> [String] {
        // A connection without a request has a line, too.
        try directory.read("access.log").split(separator: "\n").map(String.init).filter { !$0.hasPrefix("- - ") }
    }

    private static func login(_ method: Method, _ directory: TemporaryDirectory) async throws -> String {
        let helpers = "/usr/lib/squid"
        switch method {
        case .basic:
            let hash = try await ChildProcess.output(of: ["openssl", "passwd", "-apr1", "pw-of-ann"])
            let file = try readable("ann:\(hash.trimmingCharacters(in: .whitespacesAndNewlines))\n", directory)
            return "basic program \(helpers)/basic_ncsa_auth \(file)"
        case .digest:
            let file = try readable("ann:pw-of-ann\n", directory)
            return "digest program \(helpers)/digest_file_auth \(file)\nauth_param digest realm x"
        case .ntlm: return "ntlm program \(helpers)/ntlm_fake_auth"
        case .negotiate(let keytab):
            let copy = directory.path(of: "keytab")
            try FileManager.default.copyItem(atPath: keytab, toPath: copy)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: copy)
            return "negotiate program \(helpers)/negotiate_kerberos_auth -k \(copy) -s HTTP/localhost"
        }
    }

    private static func readable(_ text: String, _ directory: TemporaryDirectory) throws -> String {
        let file = try directory.write(text, to: "users")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        return file
    }

    private static func configuration(_ folder: String, _ port: UInt16, _ login: String) -> String {
        let method = login.prefix { $0 != " " }
        return """
            http_port 127.0.0.1:\(port)
            visible_hostname localhost
            pid_filename none
            cache deny all
            cache_mem 0 MB
            logformat short %un %rm %>Hs
            access_log stdio:\(folder)/access.log short
            buffered_logs off
            cache_log /dev/null
            coredump_dir /
            shutdown_lifetime 0 seconds
            pinger_enable off
            auth_param \(login)
            auth_param \(method) children 2 startup=1
            acl known proxy_auth REQUIRED
            http_access allow known
            http_access deny all
            """
    }
}
