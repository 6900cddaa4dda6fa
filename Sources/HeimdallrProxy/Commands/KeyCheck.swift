import Configuration
import Cryptography
import FileSystem
import Heimdallr
import PostgresStore
import WireText

/// Reads the keys and certificates of a configuration, describes them and finds their faults. It runs no command
/// that prints a secret, so such a secret is checked only at its first use.
struct KeyCheck {
    /// One sentence for each use of a key or certificate that has no fault.
    private(set) var findings: [ConfigurationError.Problem] = []
    private(set) var problems: [ConfigurationError.Problem] = []
    /// Warnings about certificates (expired, expiring soon, not yet valid, for another host) and about short secrets.
    private(set) var warnings: [ConfigurationError.Problem] = []

    private let environment: [String: String]
    /// Seconds since 1970-01-01T00:00:00Z.
    private let now: Int64

    /// A certificate that expires within this number of seconds causes a warning.
    private static let warningTime: Int64 = 30 * 86_400
    /// Maximum number of warnings for one file. A bundle may hold hundreds of certificates.
    private static let maxWarnings = 5

    /// Blocks while it reads files.
    init(_ uses: KeyUses, environment: [String: String], now: Int64 = WallClock.now()) {
        self.environment = environment
        self.now = now
        for use in uses.all { check(use) }
    }

    private mutating func check(_ use: KeyUse) {
        do throws(Fault) {
            switch use.content {
            case .signing(let source, let algorithm, let certificate):
                try checkSigning(source, algorithm, certificate, use)
            case .account(let source, let algorithm):
                try checkSigning(source, algorithm, nil, use) { Self.key(inside: $0) }
            case .shared(let source):
                guard let secret = try secret(source) else { return }
                say("HS256 with a shared secret", use)
                if secret.count < 32 {
                    warn("this is shorter than the 32 octets that HS256 needs (RFC 7518, section 3.2)", use)
                }
            case .tls(let certificate, let key), .listener(let certificate, let key):
                try checkTLS(certificate, key, use)
            case .server(let certificate, let key, let host):
                try checkTLS(certificate, key, use)
                if let first = try certificates(certificate).first, !first.isFor(host) {
                    warn("the certificate is not for \(host), so programs will refuse it: it has \(first.names)", use)
                }
            case .trustAnchors(let file):
                let certificates = try certificates(file)
                if let first = certificates.min(by: { $0.notAfter < $1.notAfter }) {
                    say("\(certificates.count.counted("certificate")), the first to expire: \(described(first))", use)
                }
                checkLife(certificates, use)
            }
        } catch {
            var problem = use.problem(error.message)
            problem.mayPass = use.content.files.contains(where: AwaitedFile.isAwaited)
            problems.append(problem)
        }
    }

    fileprivate struct Fault: Error {
        var message: String
    }

    private mutating func checkSigning(
        _ source: SecretSource, _ wanted: String?, _ certificate: String?, _ use: KeyUse,
        unwrapping: (SecretBytes) -> SecretBytes = { $0 }
    ) throws(Fault) {
        guard let text = try secret(source) else {
            return say("not read now, so it is checked when it is used", use)
        }
        let key: SigningKey
        let algorithm: SigningAlgorithm
        do throws(CryptographyError) {
            key = try SigningKey(text: unwrapping(text))
            algorithm = try key.algorithm(wanted: wanted.flatMap { SigningAlgorithm(rawValue: $0) })
        } catch { throw Fault(error) }
        guard let certificate else { return say("\(key), signs with \(algorithm.rawValue)", use) }
        let all = try certificates(certificate)
        guard let first = all.first, first.belongs(to: key) else { throw Fault(.key(.foreignCertificate), certificate) }
        say("\(key), signs with \(algorithm.rawValue), certificate \(described(first))", use)
        checkLife([first], use)
    }

    /// Returns the key from the file of a Google service account. Any other content is already the key.
    private static func key(inside file: SecretBytes) -> SecretBytes {
        file.withSpan { span in
            (try? JSONParser.members(span))?["private_key"]?.secretBytes(in: span) ?? file
        }
    }

    private mutating func checkTLS(_ certificate: String, _ key: String, _ use: KeyUse) throws(Fault) {
        let all = try certificates(certificate)
        guard let first = all.first else { return }
        checkLife(all, use)
        do throws(CryptographyError) {
            let key = try SigningKey(text: try SecretFile.read(path: key))
            guard first.belongs(to: key) else { throw .key(.foreignCertificate) }
            say("\(key), certificate \(described(first))", use)
        } catch {
            // As a TLS client, libcurl accepts kinds of keys that the proxy can't sign with.
            guard error == .key(.kind), case .tls = use.content else {
                throw error == .key(.foreignCertificate) ? Fault(error, certificate) : Fault(error, key)
            }
            say("a key of another kind, certificate \(described(first))", use)
        }
    }

    private func certificates(_ path: String) throws(Fault) -> [X509Certificate] {
        guard let bytes = try? FileSystem.read(path, limit: 4 << 20) else { throw Fault(message: "can't read \(path)") }
        do throws(CryptographyError) { return try X509Certificate.all(pem: bytes) } catch { throw Fault(error, path) }
    }

    private func secret(_ source: SecretSource) throws(Fault) -> SecretBytes? {
        do throws(CryptographyError) { return try source.value(environment) } catch {
            throw Fault(message: error.description)
        }
    }

    private mutating func checkLife(_ certificates: [X509Certificate], _ use: KeyUse) {
        var count = 0
        for certificate in certificates {
            let name = "the certificate \(certificate.subject)"
            let sentence: String
            if certificate.notAfter < now {
                sentence = "\(name) expired on \(certificate.notAfter.day): replace it"
            } else if certificate.notAfter - now < Self.warningTime {
                sentence = "\(name) expires on \(certificate.notAfter.day), within 30 days: prepare a new one"
            } else if certificate.notBefore > now {
                sentence = "\(name) is not valid before \(certificate.notBefore.day): check this machine's clock"
            } else {
                continue
            }
            count += 1
            guard count <= Self.maxWarnings else {
                return warn("further certificates of this file have expired or expire soon", use)
            }
            warn(sentence, use)
        }
    }

    private func described(_ certificate: X509Certificate) -> String {
        "\(certificate.subject), until \(certificate.notAfter.day)"
    }

    private mutating func say(_ text: String, _ use: KeyUse) {
        var finding = use.location
        finding.message = "\(use.name): \(text)"
        findings.append(finding)
    }

    private mutating func warn(_ text: String, _ use: KeyUse) { warnings.append(use.problem(text)) }
}

extension KeyCheck.Fault {
    fileprivate init(_ error: CryptographyError, _ path: String? = nil) {
        guard case .key(let fault) = error else {
            self.init(message: error.description)
            return
        }
        self.init(message: "\(path ?? "this") \(fault)")
    }
}

extension KeyUse {
    fileprivate func problem(_ message: String) -> ConfigurationError.Problem {
        var problem = location
        problem.message += message
        return problem
    }
}

extension SecretSource {
    /// Returns the current value, for a check that runs no command.
    /// - Returns: `nil` for a source that only the proxy reads, and for a variable that is not set.
    func value(_ environment: [String: String]) throws(CryptographyError) -> SecretBytes? {
        switch self {
        case .literal(let text): SecretBytes(Array(text.utf8))
        case .environment(let name): environment[name].map { SecretBytes(Array($0.utf8)) }
        case .command, .remote: nil
        case .file(let path): try SecretFile.read(path: path)
        }
    }
}

/// Checks the connection string of a store in PostgreSQL without a connection.
enum StoreCheck {
    /// - Returns: the fault, with advice. `nil` also for a string from a command, because a check runs no command.
    ///   `nil` also if the string can't be read or libpq is missing: the start reports these faults.
    static func fault(_ configuration: Configuration, environment: [String: String]) -> String? {
        guard case .postgres(let settings) = configuration.store else { return nil }
        guard let value = try? settings.connection.value(environment) else { return nil }
        let text = value.withSpan { Secret($0) }
        return OAuthAccessTokenPostgresStore.fault(in: text, trustAnchorsFile: configuration.trustAnchorsFile)
    }
}
