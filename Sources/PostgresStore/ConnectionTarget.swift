import CLibpq
import FileSystem
import Glibc
import Heimdallr

/// Servers and options of a libpq connection string. Ignores the environment, ~/.pgpass, ~/.postgresql and service
/// files. https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING
struct ConnectionTarget: Sendable {
    struct Host: Sendable, Equatable, CustomStringConvertible {
        /// A name, an address, or the folder of a Unix socket.
        var name: String
        /// The IP address, if the string has it: then no look-up of the name is needed.
        var address: String?
        var port: String

        var description: String { "\(address ?? name):\(port)" }
        var isUnixSocket: Bool { address == nil && (name.hasPrefix("/") || name.hasPrefix("@")) }
    }

    let hosts: [Host]
    /// All other options by libpq's names.
    private let options: [String: String]
    let password: Secret?
    /// Longest time for one address.
    let connectTimeout: Duration
    /// Time in which each server of the list can be tried, with two addresses.
    var longestAttempt: Duration {
        min(.seconds(120), connectTimeout * (2 * hosts.count) + .seconds(2))
    }
    /// Secrets that no message may show.
    var secrets: [Secret] {
        ([password] + [options["sslpassword"].map { Secret($0) }]).compactMap { $0 }.filter { !$0.isEmpty }
    }

    /// A path that can't exist, so that libpq reads no file.
    private static let nowhere = "/dev/null/none"
    private static let systemAnchors = "/etc/ssl/certs/ca-certificates.crt"

    /// - Parameter anchors: file of trust anchors, used if the string names none.
    /// - Throws: `TokenStoreError` of the kind `.misconfigured`. It never quotes the string, which holds a password.
    init(_ text: Secret, anchors: String?, _ libpq: Libpq.Table) throws(TokenStoreError) {
        var given = try Self.parse(text, libpq)
        if let reason = Self.refusal(of: given, libpq) { throw Self.fault(reason) }
        guard given["service"] == nil else {
            throw Self.fault("`service` is not supported: write host, dbname and user")
        }
        hosts = try Self.hosts(&given)
        password = given.removeValue(forKey: "password").map { Secret($0) }
        if given["user"] == nil { given["user"] = Self.systemUser() }
        guard let user = given["user"] else { throw Self.fault("write `user=…`") }
        if given["dbname"] == nil { given["dbname"] = user }
        let timeout = given.removeValue(forKey: "connect_timeout").map { Int($0) ?? -1 }
        guard timeout ?? 0 >= 0 else { throw Self.fault("`connect_timeout` must be a number of seconds") }
        connectTimeout = .seconds(min(timeout ?? 0, 3600) == 0 ? 4 : min(timeout ?? 4, 60))
        let mode = given["sslmode"] ?? (hosts.allSatisfy(\.isUnixSocket) ? "disable" : "verify-full")
        let defaults = [
            "application_name": "heimdallr-proxy", "client_encoding": "UTF8", "passfile": Self.nowhere,
            // No file for other modes: with a file in `sslrootcert`, libpq would check certificates in every mode.
            "sslmode": mode,
            "sslrootcert": mode.hasPrefix("verify") ? anchors ?? Self.systemAnchors : Self.nowhere,
            "sslcert": Self.nowhere, "sslkey": Self.nowhere,
            "sslcrl": Self.nowhere, "gssencmode": "disable",
            // Detects a lost network in seconds instead of hours.
            "keepalives": "1", "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3",
            "tcp_user_timeout": "15000",
        ]
        // `PostgresLink` itself looks for a server that writes.
        given["target_session_attrs"] = "any"
        options = given.merging(defaults) { given, _ in given }
    }

    // MARK: Reading

    private static func parse(_ text: Secret, _ libpq: Libpq.Table) throws(TokenStoreError) -> [String: String] {
        var plain = text.revealed
        while let last = plain.utf8.last, last == 0x0A || last == 0x0D || last == 0x20 { plain.removeLast() }
        guard !plain.isEmpty, !plain.utf8.contains(0) else { throw fault("it is empty") }
        if let reason = ConnectionText.fault(of: plain, known: Self.words(libpq)) { throw fault(reason) }
        var message: UnsafeMutablePointer<CChar>?
        let parsed = unsafe libpq.call.PQconninfoParse(plain, &message)
        if let message = unsafe message { unsafe libpq.call.PQfreemem(message) }
        guard let parsed = unsafe parsed else {
            // libpq's message would quote the string.
            throw fault(
                "libpq can't read it: write `host=… dbname=… user=… password=…`, values with spaces in single quotes, or "
                    + "`postgresql://user:password@host/dbname`, with %XX for special characters")
        }
        defer { unsafe libpq.call.PQconninfoFree(parsed) }
        return unsafe values(parsed).compactMapValues { $0.isEmpty ? nil : $0 }
    }

    private static func values(_ options: UnsafeMutablePointer<PQconninfoOption>) -> [String: String] {
        var found: [String: String] = [:]
        var option = unsafe options
        while let keyword = unsafe option.pointee.keyword {
            let name = unsafe String(cString: keyword)
            found[name] = unsafe option.pointee.val.map { unsafe String(cString: $0) } ?? ""
            unsafe option += 1
        }
        return found
    }

    /// The options that this libpq knows.
    private static func words(_ libpq: Libpq.Table) -> Set<String> {
        guard let options = unsafe libpq.call.PQconninfoParse("", nil) else { return [] }
        defer { unsafe libpq.call.PQconninfoFree(options) }
        return unsafe Set(values(options).keys)
    }

    /// Returns libpq's reason for refusing a value, such as an unknown `sslmode`. libpq checks values before it connects.
    /// Here it connects to a socket that can't exist, so a refusal is any other message than without the values.
    private static func refusal(of given: [String: String], _ libpq: Libpq.Table) -> String? {
        func message(_ more: [String: String]) -> String {
            let place = ["host": nowhere, "hostaddr": "", "port": "5432", "user": "x", "dbname": "x"]
            let all = more.merging(place) { _, place in place }
            let connection = unsafe libpq.call.PQconnectStart(text(all, libpq))
            defer { unsafe libpq.call.PQfinish(connection) }
            return unsafe libpq.call.PQerrorMessage(connection).map { unsafe String(cString: $0) } ?? ""
        }
        for name in ["keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"] {
            if let value = given[name], Int32(value) == nil { return "`\(name)` must be a number" }
        }
        let hidden = ["password", "sslpassword", "passfile", "sslcert", "sslkey", "service"]
        let refusal = message(given.filter { !hidden.contains($0.key) })
        guard refusal != message([:]) else { return nil }
        return ServerText.sanitize(refusal, hiding: [])
    }

    private static func fault(_ text: String) -> TokenStoreError {
        TokenStoreError("store.connection: \(text)", kind: .misconfigured)
    }

    private static func hosts(_ given: inout [String: String]) throws(TokenStoreError) -> [Host] {
        func list(_ key: String) -> [String] {
            guard let text = given.removeValue(forKey: key) else { return [] }
            return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
        let count = max(names.count, addresses.count)
        guard count > 0 else {
            throw fault("write `host=…`: a name, or the folder of the server's Unix socket, such as /run/postgresql")
        }
        guard count <= 16, names.isEmpty || addresses.isEmpty || names.count == addresses.count,
            ports.count <= 1 || ports.count == count
        else { throw fault("`host`, `hostaddr` and `port` have to list the same number of servers, 16 at most") }
        var hosts: [Host] = []
        for index in 0..<count {
            let address = addresses.isEmpty || addresses[index].isEmpty ? nil : addresses[index]
            let name = names.isEmpty || names[index].isEmpty ? address : names[index]
            guard let name else { throw fault("`host` has an empty entry") }
            // The rest of a password: not quoted.
            guard !name.dropFirst().contains("@") else { throw fault(ConnectionText.unescaped) }
            var port = ports.isEmpty ? "5432" : ports[ports.count == 1 ? 0 : index]
            if port.isEmpty { port = "5432" }
            guard let number = Int(port), (1...65535).contains(number) else { throw fault("`port` must be 1-65535") }
            hosts.append(Host(name: name, address: address, port: port))
        }
        return hosts
    }

    /// Name of this process's user. getpwuid_r(3).
    private static func systemUser() -> String? {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16 * 1024)
        let count = buffer.count
        return unsafe buffer.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress, unsafe getpwuid_r(geteuid(), &entry, start, count, &found) == 0,
                let name = unsafe found?.pointee.pw_name
            else { return nil }
            return unsafe String(cString: name)
        }
    }

    // MARK: Using

    /// Checks that the files exist that the string names.
    /// - Throws: `TokenStoreError` of the kind `.misconfigured`
    func checkFiles() throws(TokenStoreError) {
        for name in ["passfile", "sslcert", "sslkey", "sslcrl"] {
            guard let path = options[name], path != Self.nowhere, !FileSystem.exists(path) else { continue }
            throw Self.fault("`\(name)`: \(ServerText.sanitize(path, hiding: [])) does not exist")
        }
        guard options["sslmode"]?.hasPrefix("verify") == true, let anchors = options["sslrootcert"],
            anchors != "system", !FileSystem.exists(anchors)
        else { return }
        throw Self.fault(
            "\(anchors) does not exist, and the server's certificate is checked against it: name a file in `sslrootcert` "
                + "or `tls.ca_file`, or install ca-certificates")
    }

    /// Returns the connection string for one server. Sets all options that libpq would take from the environment.
    /// - Parameter address: IP address of the host's name; `nil` if none was looked up.
    func string(for host: Host, address: String?, _ libpq: Libpq.Table) -> String {
        var all = options
        all["host"] = host.name
        all["hostaddr"] = address ?? host.address ?? ""
        all["port"] = host.port
        all["password"] = password?.revealed ?? ""
        return Self.text(all, libpq)
    }

    /// Writes a connection string that sets all options that libpq would take from the environment.
    private static func text(_ given: [String: String], _ libpq: Libpq.Table) -> String {
        var all = given
        if let defaults = unsafe libpq.call.PQconninfoParse("", nil) {
            var option = unsafe defaults
            while let keyword = unsafe option.pointee.keyword {
                let name = unsafe String(cString: keyword)
                // The option's default overrides its environment variable.
                if all[name] == nil, let variable = unsafe option.pointee.envvar, unsafe getenv(variable) != nil {
                    all[name] = unsafe option.pointee.compiled.map { unsafe String(cString: $0) } ?? ""
                }
                unsafe option += 1
            }
            unsafe libpq.call.PQconninfoFree(defaults)
        }
        return all.map { "\($0.key)='\(escaped($0.value))'" }.joined(separator: " ")
    }

    private static func escaped(_ value: String) -> String {
        var text = ""
        for character in value.unicodeScalars {
            if character == "'" || character == "\\" { text += "\\" }
            text.unicodeScalars.append(character)
        }
        return text
    }
}
