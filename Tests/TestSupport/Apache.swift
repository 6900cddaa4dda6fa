import Foundation

/// Apache in the foreground, on free loopback ports: plain HTTP/1.1, HTTP/2 with prior knowledge, and HTTP/2 over TLS.
/// Stores files by PUT and serves them. Files below `/small` have at most 1 MB.
public final class Apache: Sendable {
    public let httpPort: UInt16
    public let httpsPort: UInt16
    private let child: ChildProcess
    private let directory: TemporaryDirectory

    /// - Parameter keepAlive: number of requests after which a connection ends.
    public init(certificate: PrivateCA.Certificate, keepAlive: Int = 100) async throws {
        var lastFailure: any Error = TestFailure("Apache was not tried")
        // A port that was free a moment ago may be taken by the time Apache binds it.
        for _ in 0..<5 {
            do {
                let directory = try TemporaryDirectory()
                let (http, https) = (try freePort(), try freePort())
                let file = try directory.write(
                    Self.configuration(directory.path, http, https, certificate, keepAlive), to: "apache.conf")
                try Self.makeFolders(in: directory.path)
                let child = try ChildProcess(
                    ["apache2", "-DFOREGROUND", "-f", file], environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"])
                try await Nginx.waitUntilUp(child, ports: [http, https])
                (httpPort, httpsPort, self.child, self.directory) = (http, https, child, directory)
                return
            } catch { lastFailure = error }
        }
        throw lastFailure
    }

    deinit { child.kill() }

    /// One line for each finished request: `CONNECTION REQUEST PROTOCOL STATUS`.
    public func accessLog() throws -> String { try directory.read("access.log") }

    public func stop() async throws { try await child.stop() }

    /// As root, Apache serves as another user.
    private static func makeFolders(in folder: String) throws {
        let files = FileManager.default
        try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
        for name in ["files", "files/small", "locks"] {
            try files.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: false)
            try files.setAttributes([.posixPermissions: 0o777], ofItemAtPath: "\(folder)/\(name)")
        }
    }

    private static func configuration(
        _ folder: String, _ http: UInt16, _ https: UInt16, _ certificate: PrivateCA.Certificate, _ keepAlive: Int
    ) -> String {
        let modules = ["mpm_event", "authz_core", "http2", "ssl", "dav", "dav_fs"].map {
            "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so\n"
        }
        return modules.joined() + """
            ServerRoot \(folder)
            ServerName localhost
            PidFile \(folder)/pid
            Mutex file:\(folder)/locks default
            ErrorLog /dev/stderr
            LogFormat "%{c}L %r %>s" short
            CustomLog \(folder)/access.log short
            \(getuid() == 0 ? "User www-data\nGroup www-data" : "")
            Listen 127.0.0.1:\(http)
            Listen 127.0.0.1:\(https)
            Protocols h2 h2c http/1.1
            DocumentRoot \(folder)/files
            DavLockDB \(folder)/locks/dav
            MaxKeepAliveRequests \(keepAlive)
            <Location />
                Dav On
                Require all granted
            </Location>
            <Location /small>
                LimitRequestBody 1000000
            </Location>
            <VirtualHost 127.0.0.1:\(https)>
                SSLEngine on
                SSLCertificateFile \(certificate.certificateFile)
                SSLCertificateKeyFile \(certificate.keyFile)
            </VirtualHost>
            """
    }
}
