import Foundation

/// A KDC of MIT Kerberos for one realm, on a free loopback port.
public final class KeyDistributionCenter: Sendable {
    public static let realm = "EXAMPLE.TEST"
    private let directory: TemporaryDirectory
    private let child: ChildProcess

    /// - Parameter realms: further realms, each with the loopback port of its KDC.
    public init(realms: [String: UInt16] = [:]) async throws {
        directory = try TemporaryDirectory()
        // Squid's helper reads krb5.conf as another user.
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: directory.path)
        let port = try freePort()
        let all = realms.merging([Self.realm: port]) { $1 }.map { "\($0) = {\n kdc = 127.0.0.1:\($1)\n }\n" }.joined()
        try directory.write(
            """
            [libdefaults]
             default_realm = \(Self.realm)
             dns_lookup_kdc = false
             dns_lookup_realm = false
             dns_canonicalize_hostname = false
             rdns = false
            [realms]
             \(all)
            [domain_realm]
             localhost = \(Self.realm)
            """, to: "krb5.conf")
        try directory.write(
            """
            [kdcdefaults]
             kdc_listen = 127.0.0.1:\(port)
             kdc_tcp_listen = 127.0.0.1:\(port)
            [realms]
             \(Self.realm) = {
              database_name = \(directory.path)/principals
              key_stash_file = \(directory.path)/stash
             }
            [logging]
             kdc = FILE:\(directory.path)/kdc.log
            """, to: "kdc.conf")
        let file = directory.path(of: "krb5.conf")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        let environment = Self.environment(directory)
        _ = try await ChildProcess.output(
            of: ["kdb5_util", "create", "-s", "-r", Self.realm, "-P", "master"], environment: environment)
        child = try ChildProcess(["krb5kdc", "-n", "-r", Self.realm], environment: environment)
        try await Nginx.waitUntilUp(child, ports: [port])
    }

    deinit { child.kill() }

    /// Variables for programs that use this KDC.
    public var environment: [String: String?] { Self.environment(directory) }

    /// Makes a principal with a new key, and returns the path of its keytab.
    public func keytab(_ principal: String) async throws -> String {
        let path = directory.path(of: principal.replacingOccurrences(of: "/", with: "-") + ".keytab")
        for query in ["addprinc -randkey \(principal)", "ktadd -k \(path) \(principal)"] {
            _ = try await ChildProcess.output(
                of: ["kadmin.local", "-r", Self.realm, "-q", query], environment: environment)
        }
        return path
    }

    public func stop() async throws { try await child.stop() }

    private static func environment(_ directory: TemporaryDirectory) -> [String: String?] {
        [
            "KRB5_CONFIG": directory.path(of: "krb5.conf"), "KRB5_KDC_PROFILE": directory.path(of: "kdc.conf"),
            "KRB5CCNAME": "FILE:" + directory.path(of: "none"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        ]
    }
}
